//! Black-box tests, one file per promise to the user.
