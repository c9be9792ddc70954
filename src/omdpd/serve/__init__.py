"""A learner that other systems talk to over HTTP, episode by episode: `omdpd serve`."""
