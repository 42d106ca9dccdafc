//! Values of types known at run time against derived types: the same bytes, both ways.
