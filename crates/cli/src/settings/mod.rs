//! From file, environment and flags to one checked set of settings, each with its origin.

mod diagnostic;
mod environment;
mod load;
mod properties;
mod show;

pub(crate) use diagnostic::Diagnostic;
pub(crate) use load::{FlagSetting, Settings, SourceFile, Sources};
pub(crate) use show::{Shown, show};
