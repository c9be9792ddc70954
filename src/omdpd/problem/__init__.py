"""What is asked, from both sides: what a learner may see (`setting`), and the truth (`cmdp`), closed to learners."""
