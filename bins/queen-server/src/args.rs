//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use queen_config::Format;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Queen, a partitioned message broker on PostgreSQL

usage: queen-server [--config FILE]                      serve; configured by the environment (PG_HOST, PORT, ...)
       queen-server dev [--data DIR] [--port N] [--fresh]
                                                         serve on a private PostgreSQL cluster that is made when
                                                         missing and kept, on 127.0.0.1 unless QUEEN_BIND_ADDR says
                                                         otherwise; --fresh deletes its data first
       queen-server healthcheck [--ready] [--config FILE]
                                                         ask the broker on this machine whether it lives, or whether
                                                         it takes pushes, and exit 0 or 1
       queen-server config check [--config FILE]         check the configuration and exit
       queen-server config print [--format toml|env|json] [--config FILE]
                                                         show what is in force and where it comes from
       queen-server config schema                        show every variable
       queen-server spool list|show FILE|export FILE|requeue FILE [--index N]...|delete FILE
                          [--dir DIR] [--config FILE]    quarantined events of a broker that is stopped
       queen-server migrate                              says why there is no offline migration
       queen-server --version | --help

exit codes: 0 done, 1 refused to start or unhealthy, 70 a background task ended too often, 130 or 143 ended by a
            second SIGINT or SIGTERM
";

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Serve.
    Serve(ConfigFile),
    /// Serve on a private cluster.
    Dev(DevArgs),
    /// Ask a running broker how it is.
    Healthcheck(HealthArgs),
    /// Check the configuration.
    ConfigCheck(ConfigFile),
    /// Show the configuration.
    ConfigPrint(ConfigFile, Format),
    /// Show every variable there is.
    ConfigSchema,
    /// Look at what stands in quarantine, or drive it again.
    Spool(SpoolArgs),
    /// Serve, and make a background task panic again and again, to test what follows. Debug builds only.
    Provoke(String),
    /// Explain that there is no offline migration.
    Migrate,
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// The configuration file named on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigFile(pub(crate) Option<PathBuf>);

/// Arguments of `healthcheck`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthArgs {
    pub(crate) config: ConfigFile,
    /// Ask for readiness instead of liveness.
    pub(crate) ready: bool,
}

/// Arguments of `spool`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpoolArgs {
    pub(crate) config: ConfigFile,
    /// The directory, instead of the configured one.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) verb: SpoolVerb,
}

/// What to do with a spool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpoolVerb {
    /// Its files.
    List,
    /// The events of a file, with the reasons.
    Show(String),
    /// The events of a file, as records.
    Export(String),
    /// Back behind everything that waits; no number: all of the file.
    Requeue(String, Vec<u64>),
    /// Away for good.
    Delete(String),
}

/// Arguments of `dev`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DevArgs {
    pub(crate) config: ConfigFile,
    /// Where the data is kept.
    pub(crate) data: Option<PathBuf>,
    /// The HTTP port, instead of the configured one.
    pub(crate) port: Option<u16>,
    /// Delete the data first.
    pub(crate) fresh: bool,
}

/// Parses what follows the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Command> {
    let mut args = Args { rest: args.into_iter().collect::<Vec<_>>().into_iter() };
    let Some(first) = args.rest.as_slice().first().map(|a| a.to_string_lossy().into_owned()) else {
        return Ok(Command::Serve(ConfigFile::default()));
    };
    match first.as_str() {
        "--help" | "-h" | "help" => Ok(Command::Help),
        "--version" | "-V" => Ok(Command::Version),
        // Whatever else stands there: the answer is the same.
        "migrate" => Ok(Command::Migrate),
        "dev" => {
            args.rest.next();
            args.dev().map(Command::Dev)
        }
        "healthcheck" => {
            args.rest.next();
            args.healthcheck().map(Command::Healthcheck)
        }
        "spool" => {
            args.rest.next();
            args.spool().map(Command::Spool)
        }
        "provoke" if cfg!(debug_assertions) => {
            let task = args.rest.nth(1).and_then(|task| task.into_string().ok());
            Ok(Command::Provoke(task.unwrap_or_default()))
        }
        "config" => {
            args.rest.next();
            let verb = args.rest.next().unwrap_or_default();
            match verb.to_str() {
                Some("check") => args.config_file().map(Command::ConfigCheck),
                Some("print") => args.config_print(),
                Some("schema") => args.end().map(|()| Command::ConfigSchema),
                _ => anyhow::bail!("config needs a verb: check, print or schema"),
            }
        }
        _ => args.config_file().map(Command::Serve),
    }
}

struct Args {
    rest: std::vec::IntoIter<OsString>,
}

impl Args {
    fn config_file(mut self) -> anyhow::Result<ConfigFile> {
        let mut file = ConfigFile::default();
        while let Some((name, value)) = self.flag() {
            match name.as_str() {
                "--config" => file.0 = Some(self.value(&name, value)?.into()),
                _ => return Err(unknown(&name)),
            }
        }
        Ok(file)
    }

    fn config_print(mut self) -> anyhow::Result<Command> {
        let (mut file, mut format) = (ConfigFile::default(), Format::Toml);
        while let Some((name, value)) = self.flag() {
            match name.as_str() {
                "--config" => file.0 = Some(self.value(&name, value)?.into()),
                "--format" => {
                    let text = self.value(&name, value)?;
                    format = text
                        .to_str()
                        .and_then(Format::parse)
                        .ok_or_else(|| anyhow::anyhow!("--format {text:?} is not toml, env or json"))?;
                }
                _ => return Err(unknown(&name)),
            }
        }
        Ok(Command::ConfigPrint(file, format))
    }

    fn spool(mut self) -> anyhow::Result<SpoolArgs> {
        const VERBS: &str = "spool needs a verb: list, show, export, requeue or delete";
        let verb = self.rest.next().unwrap_or_default();
        let verb = verb.to_str().unwrap_or_default().to_owned();
        let (mut config, mut dir, mut file, mut indexes) = (ConfigFile::default(), None, None, Vec::new());
        while let Some((name, value)) = self.flag() {
            match name.as_str() {
                "--config" => config.0 = Some(self.value(&name, value)?.into()),
                "--dir" => dir = Some(self.value(&name, value)?.into()),
                "--index" if verb == "requeue" => {
                    let text = self.value(&name, value)?;
                    let index = text.to_str().and_then(|t| t.parse().ok());
                    indexes.push(
                        index.ok_or_else(|| anyhow::anyhow!("--index {text:?} is not a number from 0"))?,
                    );
                }
                _ if file.is_none() && !name.starts_with('-') && verb != "list" => file = Some(name),
                _ => return Err(unknown(&name)),
            }
        }
        let file = || file.ok_or_else(|| anyhow::anyhow!("spool {verb} needs the name of a file"));
        let verb = match verb.as_str() {
            "list" => SpoolVerb::List,
            "show" => SpoolVerb::Show(file()?),
            "export" => SpoolVerb::Export(file()?),
            "requeue" => SpoolVerb::Requeue(file()?, indexes),
            "delete" => SpoolVerb::Delete(file()?),
            _ => anyhow::bail!("{VERBS}"),
        };
        Ok(SpoolArgs { config, dir, verb })
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.flag().map_or(Ok(()), |(name, _)| Err(unknown(&name)))
    }

    fn dev(mut self) -> anyhow::Result<DevArgs> {
        let mut dev = DevArgs::default();
        while let Some((name, value)) = self.flag() {
            match name.as_str() {
                "--config" => dev.config.0 = Some(self.value(&name, value)?.into()),
                "--data" => dev.data = Some(self.value(&name, value)?.into()),
                "--port" => {
                    let text = self.value(&name, value)?;
                    let port = text.to_str().and_then(|t| t.parse().ok());
                    dev.port = Some(
                        port.ok_or_else(|| anyhow::anyhow!("--port {text:?} is not a port, 0 to 65535"))?,
                    );
                }
                "--fresh" if value.is_none() => dev.fresh = true,
                _ => return Err(unknown(&name)),
            }
        }
        Ok(dev)
    }

    fn healthcheck(mut self) -> anyhow::Result<HealthArgs> {
        let mut health = HealthArgs::default();
        while let Some((name, value)) = self.flag() {
            match name.as_str() {
                "--config" => health.config.0 = Some(self.value(&name, value)?.into()),
                "--ready" if value.is_none() => health.ready = true,
                _ => return Err(unknown(&name)),
            }
        }
        Ok(health)
    }

    /// The next flag, with its value when that is attached by `=`.
    fn flag(&mut self) -> Option<(String, Option<OsString>)> {
        let arg = self.rest.next()?;
        let text = arg.to_string_lossy();
        Some(match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.into())),
            _ => (text.into_owned(), None),
        })
    }

    /// The value of a flag: attached, or the next argument.
    fn value(&mut self, name: &str, attached: Option<OsString>) -> anyhow::Result<OsString> {
        attached.or_else(|| self.rest.next()).ok_or_else(|| anyhow::anyhow!("{name} needs a value"))
    }
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!("unknown argument {name:?}; queen-server --help shows what there is")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Command {
        parse(line.split_whitespace().map(OsString::from)).unwrap()
    }

    fn refused(line: &str) -> String {
        parse(line.split_whitespace().map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn commands() {
        assert_eq!(parsed(""), Command::Serve(ConfigFile(None)));
        assert_eq!(parsed("--config q.toml"), Command::Serve(ConfigFile(Some("q.toml".into()))));
        assert_eq!(parsed("migrate from --anywhere"), Command::Migrate);
        assert_eq!(
            parsed("config check --config=q.toml"),
            Command::ConfigCheck(ConfigFile(Some("q.toml".into())))
        );
        assert_eq!(parsed("config print"), Command::ConfigPrint(ConfigFile(None), Format::Toml));
        assert_eq!(
            parsed("config print --format json"),
            Command::ConfigPrint(ConfigFile(None), Format::Json)
        );
        assert_eq!(parsed("config schema"), Command::ConfigSchema);
        let spool = |dir: Option<&str>, verb| {
            Command::Spool(SpoolArgs { config: ConfigFile(None), dir: dir.map(Into::into), verb })
        };
        assert_eq!(parsed("spool list"), spool(None, SpoolVerb::List));
        let requeue = SpoolVerb::Requeue("f.buf".to_owned(), vec![0, 3]);
        assert_eq!(parsed("spool requeue f.buf --index 0 --index=3 --dir /s"), spool(Some("/s"), requeue));
        assert_eq!(parsed("spool delete f.buf"), spool(None, SpoolVerb::Delete("f.buf".to_owned())));
        assert_eq!(parsed("healthcheck"), Command::Healthcheck(HealthArgs::default()));
        let ready = HealthArgs { config: ConfigFile(Some("q.toml".into())), ready: true };
        assert_eq!(parsed("healthcheck --config q.toml --ready"), Command::Healthcheck(ready));
        assert_eq!(parsed("-h"), Command::Help);
        assert_eq!(parsed("--version"), Command::Version);
        let dev = DevArgs { data: Some("/d".into()), port: Some(7000), fresh: true, ..DevArgs::default() };
        assert_eq!(parsed("dev --data /d --port=7000 --fresh"), Command::Dev(dev));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(refused("devv").contains("devv"));
        assert!(refused("dev --port 70000").contains("70000"));
        assert!(refused("dev --data").contains("--data needs a value"));
        assert!(refused("dev --fresh=yes").contains("--fresh"));
        assert!(refused("config").contains("check, print or schema"));
        assert!(refused("config print --format xml").contains("xml"));
        assert!(refused("healthcheck --ready=1").contains("--ready"));
        assert!(refused("config schema now").contains("now"));
        assert!(refused("spool").contains("list, show, export, requeue or delete"));
        assert!(refused("spool show").contains("needs the name of a file"));
        assert!(refused("spool show f --index 1").contains("--index"));
        assert!(refused("spool requeue f --index x").contains("x"));
        assert!(refused("spool list f").contains("\"f\""));
        assert!(refused("--port 1").contains("--port"));
    }
}
