//! Statements are files under `schema/statements/`. What several of them share is one file under `parts/` there, named by
//! a line `--@ part NAME`, for which it is put in when this crate is compiled: so a rule stands once, and each statement
//! stays one text with one plan.

/// Declares the statements of a folder as constants, and `ALL`.
macro_rules! statements {
    ($folder:literal: $($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = {
            const TEXT: &str =
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/statements/", $folder, $file));
            const WHOLE: [u8; crate::statements::whole::<0>(TEXT).1] = crate::statements::whole(TEXT).0;
            match std::str::from_utf8(&WHOLE) {
                Ok(text) => text,
                Err(_) => panic!("a part that is no text"),
            }
        };)*

        /// Every statement with its path, for the tests of plans and headers.
        pub const ALL: &[(&str, &str)] = &[$((concat!($folder, $file), $name)),*];
    };
}

macro_rules! parts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../schema/statements/parts/", $name, ".sql")))),*]
    };
}

const PARTS: &[(&str, &str)] = parts! {
    "furthest_behind"
    "group_lag"
    "log_end"
    "partition_counts"
    "retention_kind"
    "retention_rules"
    "seek_from"
    "seek_reset"
};

const MARK: &str = "--@ part ";

/// A statement with its parts put in, as far as it fits into `N` bytes, and how many bytes it has.
pub(crate) const fn whole<const N: usize>(text: &str) -> ([u8; N], usize) {
    let text = text.as_bytes();
    let (mut out, mut len, mut at) = ([0; N], 0, 0);
    while at < text.len() {
        if text[at] == b'-' && begins(text, at, MARK) {
            let (name, part) = part(text, at + MARK.len());
            let (part, mut i) = (part.as_bytes(), 0);
            while i < part.len() {
                put(&mut out, &mut len, part[i]);
                i += 1;
            }
            at += MARK.len() + name.len();
        } else {
            put(&mut out, &mut len, text[at]);
            at += 1;
        }
    }
    (out, len)
}

const fn put(out: &mut [u8], len: &mut usize, byte: u8) {
    if *len < out.len() {
        out[*len] = byte;
    }
    *len += 1;
}

const fn begins(text: &[u8], at: usize, with: &str) -> bool {
    let (with, mut i) = (with.as_bytes(), 0);
    while i < with.len() && at + i < text.len() && text[at + i] == with[i] {
        i += 1;
    }
    i == with.len()
}

/// The part that is named at `at`, to the end of the line.
const fn part(text: &[u8], at: usize) -> (&'static str, &'static str) {
    let mut i = 0;
    while i < PARTS.len() {
        let (name, part) = PARTS[i];
        let end = at + name.len();
        if begins(text, at, name) && end < text.len() && text[end] == b'\n' {
            return (name, part);
        }
        i += 1;
    }
    panic!("a statement names a part that is not listed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_put_in_and_every_file_listed() {
        let of = |path: String| {
            let files = std::fs::read_dir(path).unwrap();
            let mut names: Vec<String> =
                files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        };
        let files = of(format!("{}/../../schema/statements/parts", env!("CARGO_MANIFEST_DIR")));
        let mut listed: Vec<String> = PARTS.iter().map(|(name, _)| format!("{name}.sql")).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
        let all =
            [crate::sql::ALL, crate::maintenance::sql::ALL, crate::admin::sql::ALL, crate::stats::sql::ALL];
        for (name, part) in PARTS {
            let users = all.iter().copied().flatten().filter(|(_, sql)| sql.contains(part)).count();
            assert!(users > 1, "{name} is shared by {users} statements");
        }
        for (path, sql) in all.iter().copied().flatten() {
            assert!(!sql.contains(MARK), "{path} names a part inside a part");
        }
    }
}
