//! Every conformance case that is left out names the work that will bring it.

use crate::conformance::left_out::{self, PATH};
use crate::repo::SourceFile;

/// Checks the one file with the list.
pub(crate) fn check(file: &SourceFile) -> Vec<String> {
    if file.path != PATH {
        return Vec::new();
    }
    match left_out::check(&file.text) {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("{PATH}: {error:#}")],
    }
}
