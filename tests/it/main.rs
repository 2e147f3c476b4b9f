//! One binary, a module a concern.

mod cases;
mod law;
mod limits;
mod segments;
mod stale;
mod vectors;
