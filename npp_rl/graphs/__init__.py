"""Navigation graphs in a minibatch: batches, encoders, what is read from them."""
