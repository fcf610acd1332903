use std::path::{Path, PathBuf};

use queen_config::{ConfigErrors, Loaded, Sources, load};

/// Quiet about the one warning of every default start: authentication is off.
pub(crate) fn sources(pairs: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::from_pairs(pairs.iter().copied());
    sources.env.entry("QUEEN_BIND_ADDR".to_owned()).or_insert_with(|| "127.0.0.1".to_owned());
    sources.env.entry("QUEEN_SERVER_ID".to_owned()).or_insert_with(|| "test-1".to_owned());
    sources
}

pub(crate) fn ok(pairs: &[(&str, &str)]) -> Loaded {
    load(&sources(pairs)).unwrap_or_else(|errors| panic!("{pairs:?}: {errors}"))
}

pub(crate) fn refused(pairs: &[(&str, &str)]) -> ConfigErrors {
    match load(&sources(pairs)) {
        Ok(_) => panic!("{pairs:?} was accepted"),
        Err(errors) => errors,
    }
}

/// The lines of the report that tell a problem.
pub(crate) fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
    refused(pairs).problems.iter().map(ToString::to_string).collect()
}

/// A directory with a configuration file in it.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Loads with a configuration file; paths in messages are cut to the file's name.
pub(crate) fn with_file(text: &str, pairs: &[(&str, &str)]) -> Result<Loaded, Vec<String>> {
    let dir = Dir::new();
    let path = dir.write("queen.toml", text);
    let sources = Sources { config_file: Some(path), ..sources(pairs) };
    let here = format!("{}/", dir.path().display());
    load(&sources)
        .map_err(|errors| errors.problems.iter().map(|p| p.to_string().replace(&here, "")).collect())
}
