//! The password: where it comes from, and that nothing prints it.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::OpenError;

/// What others than owner and group must not be able to do with a secret: read it.
const OTHERS_READ: u32 = 0o004;

/// A password, which nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Origin);

#[derive(Clone, PartialEq, Eq)]
enum Origin {
    Text(String),
    File(PathBuf),
}

impl Password {
    /// The password itself, as it came from the environment.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Origin::Text(text.into()))
    }

    /// What a file holds whenever a connection is made, without the line break at its end.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self(Origin::File(path.into()))
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.0 {
            Origin::Text(_) => None,
            Origin::File(path) => Some(path),
        }
    }

    /// The password as it is now. Reads a file.
    pub(crate) fn reveal(&self) -> Result<String, OpenError> {
        let path = match &self.0 {
            Origin::Text(text) => return Ok(text.clone()),
            Origin::File(path) => path,
        };
        let text = std::fs::read_to_string(path).map_err(|source| {
            let context = format!("read the password's file. file=`{}`", path.display());
            OpenError::Password { context, source }
        })?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Whether everybody on this machine may read the file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    // One that can't be looked at is told of where it is read.
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & OTHERS_READ != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_a_file_ends_before_the_line_break_and_changes_with_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "open sesame \r\n").unwrap();
        let password = Password::from_file(file.path());
        assert_eq!(password.reveal().unwrap(), "open sesame ");
        std::fs::write(file.path(), "shut sesame").unwrap();
        assert_eq!(password.reveal().unwrap(), "shut sesame");
        assert!(!format!("{password:?}").contains("sesame"));
        Password::from_file("/nowhere/at/all").reveal().unwrap_err();
    }

    #[test]
    fn who_may_read_a_file_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, is_open) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open_to_others(file.path()), is_open, "{mode:o}");
        }
        assert!(!is_open_to_others(Path::new("/nowhere/at/all")));
    }
}
