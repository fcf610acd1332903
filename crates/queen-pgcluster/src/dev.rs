//! Where `queen-server dev` keeps its data.

use std::path::{Path, PathBuf};

/// The directory of the development cluster and of the files beside it.
///
/// Root's data is in `/var/lib/queen/dev`, because the user that runs PostgreSQL for root cannot reach root's
/// home. Everybody else's is `$XDG_DATA_HOME/queen/dev`, else `$HOME/.local/share/queen/dev`; the two values are
/// arguments, since this crate reads no environment. An `XDG_DATA_HOME` that is empty or relative is ignored, as
/// its specification asks. Without a home it is the `/var/lib` path.
pub fn run_dir(xdg_data_home: Option<&Path>, home: Option<&Path>, is_root: bool) -> PathBuf {
    let usable = |dir: &&Path| dir.is_absolute();
    let data_home = xdg_data_home.filter(usable).map(Path::to_path_buf);
    let data_home = data_home.or_else(|| home.filter(usable).map(|home| home.join(".local/share")));
    match data_home {
        Some(data_home) if !is_root => data_home.join("queen/dev"),
        _ => PathBuf::from("/var/lib/queen/dev"),
    }
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(xdg: Option<&str>, home: Option<&str>, is_root: bool, expected: &str) {
        assert_eq!(run_dir(xdg.map(Path::new), home.map(Path::new), is_root), Path::new(expected));
    }

    #[test]
    fn the_directory_follows_the_user() {
        check(Some("/data"), Some("/home/a"), false, "/data/queen/dev");
        check(None, Some("/home/a"), false, "/home/a/.local/share/queen/dev");
        check(Some(""), Some("/home/a"), false, "/home/a/.local/share/queen/dev");
        check(Some("relative"), Some("/home/a"), false, "/home/a/.local/share/queen/dev");
        check(None, None, false, "/var/lib/queen/dev");
        check(Some("/data"), Some("/root"), true, "/var/lib/queen/dev");
    }
}
