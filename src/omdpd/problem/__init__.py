"""A problem has two sides: what a learner may see (`setting`), and the truth (`cmdp`), closed to learners."""
