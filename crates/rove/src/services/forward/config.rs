//! Forwardings and the modes of commands in ssh's configuration, as `ssh -G` reports them. Pure
//! text.

use crate::notice::OnFailure;
use crate::services::forward::spec::{BadSpec, Spec};
use crate::services::forward::wishes::Side;

/// A host's configuration, as far as it is for us and not for ssh.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    /// LocalForward, RemoteForward and DynamicForward.
    pub forwards: Vec<(Side, Spec)>,
    /// ForwardAgent.
    pub agent: Agent,
    /// IdentityAgent, as it stands there; empty if it is not set.
    pub identity_agent: String,
    /// ClearAllForwardings: none is wanted, from wherever.
    pub cleared: bool,
    /// GatewayPorts: others may connect to local ports.
    pub gateway: bool,
    /// ExitOnForwardFailure.
    pub on_failure: OnFailure,
    /// RequestTTY.
    pub terminal: TerminalWish,
    /// StdinNull.
    pub no_input: bool,
    /// SessionType none.
    pub no_command: bool,
    /// Lines that could not be read.
    pub unread: Vec<(String, BadSpec)>,
}

/// What ForwardAgent says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Agent {
    /// No.
    #[default]
    No,
    /// Yes, the one that ssh itself would use.
    Yes,
    /// The one at this path, or whose path this variable (`$NAME`) has.
    At(String),
}

/// Whether a command is to run on a terminal (RequestTTY).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TerminalWish {
    /// A shell is, a command is not.
    #[default]
    Usual,
    /// Never.
    No,
    /// If standard input is one.
    Yes,
    /// Always.
    Force,
}

impl Config {
    /// Reads the report.
    pub fn read(report: &str) -> Config {
        let mut config = Config::default();
        for line in report.lines() {
            let Some((word, value)) = line.split_once(' ') else { continue };
            let value = value.trim();
            // What ssh writes with a space between its halves is the command line's with a colon.
            let joined = value.replacen(' ', ":", 1);
            match word {
                "localforward" => config.add(Side::Local, &joined, Spec::local),
                "remoteforward" => config.add(Side::Remote, &joined, Spec::remote),
                "dynamicforward" => config.add(Side::Local, value, Spec::dynamic),
                "clearallforwardings" => config.cleared = value == "yes",
                "gatewayports" => config.gateway = value == "yes",
                "exitonforwardfailure" if value == "yes" => config.on_failure = OnFailure::Exit,
                "stdinnull" => config.no_input = value == "yes",
                "sessiontype" => config.no_command = value == "none",
                "requesttty" => {
                    config.terminal = match value {
                        "no" | "false" => TerminalWish::No,
                        "yes" | "true" => TerminalWish::Yes,
                        "force" => TerminalWish::Force,
                        _ => TerminalWish::Usual,
                    }
                }
                "identityagent" => config.identity_agent = value.to_owned(),
                "forwardagent" => {
                    config.agent = match value {
                        "no" => Agent::No,
                        "yes" => Agent::Yes,
                        path => Agent::At(path.to_owned()),
                    }
                }
                _ => {}
            }
        }
        config.drop_shadows();
        config
    }

    fn add(&mut self, side: Side, text: &str, read: fn(&str) -> Result<Spec, BadSpec>) {
        match read(text) {
            Ok(spec) => self.forwards.push((side, spec)),
            Err(bad) => self.unread.push((text.to_owned(), bad)),
        }
    }

    /// OpenSSH reports a local forwarding to a Unix socket twice, the second time as a dynamic one.
    fn drop_shadows(&mut self) {
        let is_unix = |spec: &Spec| matches!(spec.target, super::spec::Target::Unix(_));
        let is_socks = |spec: &Spec| matches!(spec.target, super::spec::Target::Socks);
        let real: Vec<_> = self
            .forwards
            .iter()
            .filter(|(side, spec)| *side == Side::Local && is_unix(spec))
            .map(|(_, spec)| spec.listen.clone())
            .collect();
        self.forwards.retain(|(side, spec)| {
            *side == Side::Remote || !is_socks(spec) || !real.contains(&spec.listen)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_reports() {
        // `ssh -G` of OpenSSH 9.2, with what else it says.
        let report = "user root\nclearallforwardings no\nexitonforwardfailure yes\n\
            gatewayports no\ndynamicforward 85\ndynamicforward /tmp/c\ndynamicforward 1080\n\
            dynamicforward [*]:1081\nlocalforward 8080 [localhost]:80\n\
            localforward []:83 [h]:1\nlocalforward /tmp/a.sock [localhost]:80\n\
            localforward 85 /tmp/b.sock\nlocalforward /tmp/c /tmp/d\n\
            remoteforward [0.0.0.0]:9001 [h]:80\nremoteforward 9002 [socks]:0\n\
            remoteforward 0 [h]:80\nforwardagent $MINE\nidentityagent none\n";
        let config = Config::read(report);
        let shown: Vec<String> = config
            .forwards
            .iter()
            .map(|(side, spec)| format!("{} {spec}", if *side == Side::Local { "L" } else { "R" }))
            .collect();
        assert_eq!(
            shown,
            [
                "L 1080",
                "L [*]:1081",
                "L 8080:[localhost]:80",
                "L [*]:83:[h]:1",
                "L /tmp/a.sock:[localhost]:80",
                "L 85:/tmp/b.sock",
                "L /tmp/c:/tmp/d",
                "R [0.0.0.0]:9001:[h]:80",
                "R 9002",
                "R 0:[h]:80",
            ]
        );
        assert_eq!(config.agent, Agent::At("$MINE".into()));
        assert_eq!(config.identity_agent, "none");
        assert_eq!(
            (config.cleared, config.gateway, config.on_failure),
            (false, false, OnFailure::Exit)
        );
        assert_eq!(config.unread, []);
    }

    #[test]
    fn what_ssh_does_not_report() {
        let config = Config::read("localforward x\nforwardagent yes\nclearallforwardings yes\n\n");
        assert_eq!(config.unread, [("x".into(), BadSpec::Fields)]);
        assert_eq!((config.agent, config.cleared), (Agent::Yes, true));
        assert_eq!(Config::read(""), Config::default());
    }

    #[test]
    fn how_commands_run() {
        for (report, terminal, no_input, no_command) in [
            (
                "requesttty auto\nstdinnull no\nsessiontype default\n",
                TerminalWish::Usual,
                false,
                false,
            ),
            (
                "requesttty force\nstdinnull yes\nsessiontype none\n",
                TerminalWish::Force,
                true,
                true,
            ),
            ("requesttty true\nsessiontype subsystem\n", TerminalWish::Yes, false, false),
            ("requesttty false\n", TerminalWish::No, false, false),
        ] {
            let config = Config::read(report);
            let found = (config.terminal, config.no_input, config.no_command);
            assert_eq!(found, (terminal, no_input, no_command), "{report}");
        }
    }
}
