//! What a run costs: processor time, memory, device flushes, and what others did meanwhile.

pub mod account;
pub mod disk;
pub mod host;
pub mod machine;
pub mod spread;
