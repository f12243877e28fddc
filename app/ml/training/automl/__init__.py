"""The best model within a budget: candidates, their order, what they are measured by, and which of them is served."""
