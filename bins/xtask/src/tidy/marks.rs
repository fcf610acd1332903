//! What must not stay behind: unfinished marks, ignored tests without a reason, places of one machine.

use crate::repo::SourceFile;

/// In two parts, so that this file does not find itself.
const UNFINISHED: [(&str, &str); 5] =
    [("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("FIX", "ME"), ("XX", "X")];

const MACHINE: [(&str, &str); 8] = [
    ("/wo", "rk/"),
    ("/fa", "rm/"),
    ("/ro", "ot/"),
    ("artif", "actory"),
    ("index.", "crates.io"),
    ("registry.", "npmjs"),
    ("pypi", ".org"),
    ("deb.", "debian.org"),
];

const TEXT_OF_OURS: [&str; 8] = [".rs", ".sql", ".md", ".toml", ".yml", ".sh", ".py", "run"];

/// Marks of unfinished work, and tests that are ignored without saying why.
pub(crate) fn left_behind(file: &SourceFile) -> Vec<String> {
    if super::is_copy(file) || !TEXT_OF_OURS.iter().any(|end| file.path.ends_with(end)) {
        return Vec::new();
    }
    let mut found = lines_with(file, &UNFINISHED, "is left behind");
    if file.path.ends_with(".rs") {
        found.extend(lines_with(file, &[("#[ign", "ore]")], "gives no reason"));
    }
    found
}

/// Directories of somebody's machine and hosts of a registry.
pub(crate) fn machine_paths(file: &SourceFile) -> Vec<String> {
    if file.path.ends_with(".lock") {
        return Vec::new();
    }
    lines_with(file, &MACHINE, "belongs to one machine")
}

fn lines_with(file: &SourceFile, patterns: &[(&str, &str)], complaint: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (head, tail) in patterns {
            let pattern = format!("{head}{tail}");
            if line.contains(&pattern) {
                found.push(format!("{}:{}: {pattern} {complaint}", file.path, index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_mark_is_found_with_its_line() {
        for (head, tail) in UNFINISHED {
            let found = left_behind(&file("crates/a/src/b.rs", &format!("fine\n  {head}{tail}\n")));
            assert_eq!(found.len(), 1, "{head}");
            assert!(found[0].starts_with("crates/a/src/b.rs:2: "), "{found:?}");
        }
        assert_eq!(
            left_behind(&file("benches/load/a.rs", &format!("{}{}", "FIX", "ME"))),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        let bare = format!("{}{}", "#[ign", "ore]");
        assert_eq!(left_behind(&file("tests/a.rs", &bare)).len(), 1);
        assert_eq!(left_behind(&file("tests/a.rs", "#[ignore = \"needs a mount\"]")), Vec::<String>::new());
    }

    #[test]
    fn places_of_a_machine_are_found_everywhere_but_in_lock_files() {
        for (head, tail) in MACHINE {
            let text = format!("see {head}{tail}x");
            assert_eq!(machine_paths(&file("docs/a.md", &text)).len(), 1, "{head}");
            assert_eq!(machine_paths(&file("Cargo.lock", &text)), Vec::<String>::new());
        }
    }
}
