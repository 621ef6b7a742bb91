//! Every example, run as the program it is.

mod independent;
mod programs;
mod servers;
mod sources;
