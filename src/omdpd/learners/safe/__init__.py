"""Plans that logs certify, and the learner that renews them."""
