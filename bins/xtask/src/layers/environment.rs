//! Only `queen-config` reads the environment, so that every variable is known, checked and documented.

/// Crates that may: the reader itself, and the tests' support.
const READERS: [&str; 2] = ["crates/queen-config/", "crates/queen-testkit/"];

const CALLS: [&str; 2] = ["env::var", "option_env!"];

/// Places in the product code of a library that read the environment.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    let is_library = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    if !is_library || READERS.iter().any(|reader| path.starts_with(reader)) {
        return Vec::new();
    }
    // A module of tests ends its file.
    let product = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let code = product.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = code.filter(|(_, line)| CALLS.iter().any(|call| line.contains(call)));
    found.map(|(index, _)| format!("{path}:{}: only queen-config reads the environment", index + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_reads_a_variable_is_named_with_the_line() {
        let text = "//! env::var\nfn f() {\n    std::env::var(\"X\");\n    std::env::vars_os();\n}\n";
        let found = check("crates/queen-core/src/a/b.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/queen-core/src/a/b.rs:3: only queen-config"));
    }

    #[test]
    fn tests_binaries_and_the_reader_are_free() {
        let text = "fn f() { env::var(\"X\") }";
        for path in
            ["crates/queen-config/src/lib.rs", "crates/queen-pg/tests/a.rs", "bins/queen-server/src/main.rs"]
        {
            assert_eq!(check(path, text), Vec::<String>::new());
        }
        assert_eq!(
            check("crates/queen-core/src/a.rs", "#[cfg(test)]\nmod tests { env::var }"),
            Vec::<String>::new()
        );
    }
}
