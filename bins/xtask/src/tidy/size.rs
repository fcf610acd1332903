//! Sizes: a thin `main`, and files of one concern.

use crate::repo::SourceFile;

const MAIN: &str = "bins/queen-server/src/main.rs";
const MAIN_LINES_MAX: usize = 150;
const FILE_LINES_MAX: usize = 600;

/// Files that are longer for a reason, and how long they may be. A ratchet: the numbers only go down.
const LONGER: &[(&str, usize)] = &[];

/// `main` loads, starts, serves and drains; everything else has a place of its own.
pub(crate) fn main_is_thin(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    if file.path != MAIN || lines < MAIN_LINES_MAX {
        return Vec::new();
    }
    vec![format!("{MAIN} has {lines} lines; it stays under {MAIN_LINES_MAX}")]
}

/// A file past the limit has a second concern in it.
pub(crate) fn files_are_short(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    let allowed =
        LONGER.iter().find(|(path, _)| *path == file.path).map_or(FILE_LINES_MAX, |(_, lines)| *lines);
    if !file.path.ends_with(".rs") || super::is_copy(file) || lines <= allowed {
        return Vec::new();
    }
    vec![format!("{} has {lines} lines, more than {allowed}; look for the second concern in it", file.path)]
}

/// Exceptions that are not needed any more.
pub(crate) fn stale_ratchets(files: &[SourceFile]) -> Vec<String> {
    let lines_of =
        |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.lines().count());
    let stale = LONGER.iter().filter(|(path, _)| lines_of(path).is_none_or(|lines| lines <= FILE_LINES_MAX));
    stale.map(|(path, _)| format!("{path} needs no exception from the length of files")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> SourceFile {
        SourceFile { path: path.to_owned(), text: "\n".repeat(lines) }
    }

    #[test]
    fn long_files_are_named() {
        assert_eq!(files_are_short(&file("crates/a/src/b.rs", 600)), Vec::<String>::new());
        assert!(files_are_short(&file("crates/a/src/b.rs", 601))[0].contains("601"));
        assert_eq!(files_are_short(&file("docs/long.md", 5000)), Vec::<String>::new());
        assert_eq!(files_are_short(&file("benches/load/qload/src/main.rs", 5000)), Vec::<String>::new());
    }

    #[test]
    fn main_stays_thin() {
        assert_eq!(main_is_thin(&file(MAIN, 149)), Vec::<String>::new());
        assert_eq!(main_is_thin(&file(MAIN, 150)).len(), 1);
        assert_eq!(main_is_thin(&file("bins/xtask/src/main.rs", 500)), Vec::<String>::new());
    }
}
