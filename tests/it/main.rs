//! One binary, a module a concern.

mod builder;
mod cases;
mod compress;
mod encoders;
mod large;
mod law;
mod limits;
mod orphans;
mod reader;
mod segments;
mod stale;
mod stream;
mod vectors;
