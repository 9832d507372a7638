//! The options for forwardings, and ssh's configuration of them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::environment::variable_os;
use crate::cli::values::parse_span;
use crate::failure::Failure;
use crate::notice::OnFailure;
use crate::services::forward::config::{Agent, Config};
use crate::services::forward::spec::{Bind, Endpoint, Listen, Spec};
use crate::services::forward::wishes::{ForwardRequests, Ready, Side, is_public};
use crate::ssh::{Login, SshConfigError};
use crate::trace::Trace;

#[derive(Args, Debug)]
pub struct ForwardArgs {
    /// Listen here, and go on from the host: [ADDRESS:]PORT:HOST:PORT. The path of a Unix socket may
    /// stand for either half.
    #[arg(short = 'L', value_name = "FROM:TO", value_parser = Spec::local)]
    from_here: Vec<Spec>,

    /// Listen on the host, and go on from here; with FROM alone, to where SOCKS says.
    #[arg(short = 'R', value_name = "FROM:TO", value_parser = Spec::remote)]
    from_there: Vec<Spec>,

    /// Listen here for SOCKS, and go on from the host: [ADDRESS:]PORT.
    #[arg(short = 'D', value_name = "FROM", value_parser = Spec::dynamic)]
    dynamic: Vec<Spec>,

    /// Let other machines connect to ports of -L and -D that name no address.
    #[arg(short = 'g')]
    gateway: bool,

    /// Let -R listen on other addresses of the host than loopback.
    #[arg(long)]
    public_remote: bool,

    /// Let programs on the host use your agent, to list keys and to sign.
    #[arg(short = 'A')]
    agent: bool,

    /// The configuration's agent is not wanted either.
    #[arg(skip)]
    no_agent: bool,

    /// Run nothing on the host: only forward.
    #[arg(short = 'N')]
    pub(super) no_command: bool,

    /// Make standard input and output a connection of the host's to this port.
    #[arg(short = 'W', value_name = "HOST:PORT")]
    pub(super) stdio: Option<Endpoint>,

    /// Without a shell: end when the host has been silent for this many seconds, or with m, h or d after the number
    /// minutes, hours or days [default: 12h for a command, 72h
    /// without]. Less than 20 s counts as 20 s.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(super) give_up: Option<Duration>,
}

impl ForwardArgs {
    /// Whether the session has neither a shell nor a command.
    pub(super) fn is_all(&self) -> bool {
        self.no_command || self.stdio.is_some()
    }

    /// Whether only the configuration could name forwardings.
    fn is_empty(&self) -> bool {
        let given = [&self.from_here, &self.from_there, &self.dynamic];
        !self.agent && given.iter().all(|specs| specs.is_empty())
    }

    /// Forwards no agent, even if ssh's configuration does.
    pub(super) fn refuse_agent(&mut self) {
        self.no_agent = true;
    }

    /// Reads ssh's configuration and listens at this end; tells `login` whether to forward an agent.
    pub(super) async fn prepare(&self, login: &mut Login, trace: &Trace) -> Result<Ready, Failure> {
        let report = match login.config().await {
            Ok(report) => report,
            Err(why) if self.no_command && self.is_empty() => {
                return Err(unasked(why, &login.host));
            }
            Err(why) => {
                trace.warn(format_args!(
                    "what ssh's configuration forwards is not known, and left out: {why}"
                ));
                ""
            }
        };
        let config = Config::read(report);
        for (text, bad) in &config.unread {
            trace.warn(format_args!("ssh's configuration forwards {text:?}: {bad}"));
        }
        let wishes = self.wishes(&login.host, config, trace)?;
        login.request.agent = wishes.agent.is_some();
        let ready = wishes.listen().await?;
        for failure in &ready.failures {
            trace.warn(format_args!("{failure}"));
        }
        Ok(ready)
    }

    /// What these words and ssh's configuration of this host ask for together.
    ///
    /// # Errors
    /// If a forwarding would be open to more than the words allow.
    pub fn wishes(
        &self,
        host: &str,
        config: Config,
        trace: &Trace,
    ) -> Result<ForwardRequests, Failure> {
        let agent = self.agent(host, &config, trace);
        let on_failure = if self.stdio.is_some() { OnFailure::Exit } else { config.on_failure };
        if config.cleared {
            return Ok(ForwardRequests { forwards: Vec::new(), agent, on_failure });
        }
        let sides = [(Side::Local, &self.from_here), (Side::Remote, &self.from_there)];
        let given = sides.into_iter().chain([(Side::Local, &self.dynamic)]);
        let given =
            given.flat_map(|(side, specs)| specs.iter().map(move |spec| (side, spec.clone())));
        // As with ssh, whoever only wants one connection does not want the configuration's.
        let configured = config.forwards.into_iter().filter(|_| self.stdio.is_none());
        let configured =
            configured.map(|(side, spec)| (side, self.kept_private(side, spec, trace)));
        let mut forwards: Vec<(Side, Spec)> = Vec::new();
        for (side, mut spec) in given.chain(configured) {
            match (side, &mut spec.listen) {
                (Side::Local, Listen::Tcp { bind, .. })
                    if *bind == Bind::Unsaid && (self.gateway || config.gateway) =>
                {
                    *bind = Bind::Any;
                }
                (Side::Remote, listen) if is_public(listen) && !self.public_remote => {
                    return Err(Failure::new(
                        format!("-R {spec}: others than {host} itself could connect there"),
                        "If that is meant, say --public-remote; else leave the address out.",
                    ));
                }
                _ => {}
            }
            if !forwards.contains(&(side, spec.clone())) {
                forwards.push((side, spec));
            }
        }
        Ok(ForwardRequests { forwards, agent, on_failure })
    }

    /// A forwarding of ssh's configuration. On the host it listens on loopback unless more is allowed, as at
    /// most sshds in any case, so it then equals one that names no address.
    fn kept_private(&self, side: Side, mut spec: Spec, trace: &Trace) -> Spec {
        if side == Side::Remote && is_public(&spec.listen) && !self.public_remote {
            trace.warn(format_args!("-R {spec} listens on loopback; --public-remote allows more"));
            if let Listen::Tcp { bind, .. } = &mut spec.listen {
                *bind = Bind::Unsaid;
            }
        }
        spec
    }

    /// The socket of the agent to forward.
    fn agent(&self, host: &str, config: &Config, trace: &Trace) -> Option<PathBuf> {
        let wanted = if self.agent { &Agent::Yes } else { &config.agent };
        if self.no_agent {
            return None;
        }
        let path = match (wanted, config.identity_agent.as_str()) {
            (Agent::No, _) => return None,
            (Agent::At(path), _) => expanded(path),
            (Agent::Yes, "" | "SSH_AUTH_SOCK") => variable_os("SSH_AUTH_SOCK"),
            (Agent::Yes, "none") => None,
            (Agent::Yes, path) => expanded(path),
        };
        match path {
            Some(path) => {
                trace.note(format_args!("programs on {host} may use your agent until this ends"));
                Some(path.into())
            }
            None => {
                trace.note(format_args!("no agent is forwarded: none is named by SSH_AUTH_SOCK"));
                None
            }
        }
    }
}

/// The failure without a command, if the configuration, its only source of forwardings, is unknown.
fn unasked(why: &SshConfigError, host: &str) -> Failure {
    let what = format!("what ssh's configuration forwards is not known: {why}");
    Failure::new(what, format!("Look at `ssh -G {host}`."))
}

/// Expands a path of ssh's configuration: `$NAME` is a variable, `~/` the home directory.
fn expanded(path: &str) -> Option<OsString> {
    if let Some(name) = path.strip_prefix('$') {
        return variable_os(name.trim_start_matches('{').trim_end_matches('}'));
    }
    match path.strip_prefix("~/") {
        Some(rest) => {
            Some(PathBuf::from(variable_os(crate::os::environment::HOME)?).join(rest).into())
        }
        None => Some(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::os::clock::Clock;
    use crate::trace::Verbosity;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        forward: ForwardArgs,
    }

    /// The forwardings of these words and this report of ssh's.
    fn wishes(words: &str, report: &str) -> Result<String, Failure> {
        let words = std::iter::once("x").chain(words.split_whitespace());
        let Alone { forward } = Alone::try_parse_from(words).unwrap();
        let trace = Trace::new(Clock::start(), Verbosity::Quiet);
        let wishes = forward.wishes("h", Config::read(report), &trace)?;
        let shown = wishes.forwards.iter().map(|(side, spec)| match side {
            Side::Local => format!("L {spec}"),
            Side::Remote => format!("R {spec}"),
        });
        Ok(shown.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn words_and_configuration_come_together() {
        for (words, report, wanted) in [
            ("-L 1:h:2", "localforward 1 [h]:2\nlocalforward 3 [h]:4", "L 1:[h]:2, L 3:[h]:4"),
            ("-g -L 1:h:2 -R 1:h:2", "", "L [*]:1:[h]:2, R 1:[h]:2"),
            ("-D 1", "gatewayports yes", "L [*]:1"),
            ("-L 1:h:2", "clearallforwardings yes", ""),
            ("-W h:1 -L 1:h:2", "localforward 3 [h]:4", "L 1:[h]:2"),
            // What is public by the configuration is not, unless the words allow it.
            ("", "remoteforward [*]:1 [h]:2", "R 1:[h]:2"),
            ("", "remoteforward [0.0.0.0]:1 [h]:2", "R 1:[h]:2"),
            ("", "remoteforward 1 [h]:2\nremoteforward [*]:1 [h]:2", "R 1:[h]:2"),
            ("-R 1:h:2", "remoteforward [*]:1 [h]:2", "R 1:[h]:2"),
            ("--public-remote", "remoteforward [*]:1 [h]:2", "R [*]:1:[h]:2"),
            ("--public-remote -R *:1:h:2", "", "R [*]:1:[h]:2"),
        ] {
            let shown =
                wishes(words, report).unwrap_or_else(|failure| panic!("{words}: {failure}"));
            assert_eq!(shown, wanted, "{words} {report}");
        }
        let refused = wishes("-R *:1:h:2", "").unwrap_err();
        assert!(refused.what.contains("could connect there"), "{refused}");
    }
}
