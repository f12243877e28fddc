"""Online sessions: a learner with its inputs, its rounds and the models made of it."""
