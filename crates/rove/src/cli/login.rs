//! Turns the user's words into a login on a host, and a broken session into a message.

use std::ffi::OsString;
use std::sync::Arc;

use rove_session::Peer;
use rove_session::client::Cause;

use crate::bootstrap::nonce::Nonce;
use crate::bootstrap::{CostProfile, Goal, Purpose, Request, Server};
use crate::cli::config::HostConfig;
use crate::cli::environment::{locale, variable_os};
use crate::cli::values::split_words;
use crate::cli::words::{ServerArgs, SshArgs};
use crate::client::Ended;
use crate::failure::Failure;
use crate::os::{self, environment, process};
use crate::quoted::quoted;
use crate::seen_hosts::Hosts;
use crate::ssh::{Login, Via};

/// The failure of a session whose program's status is unknown; `None` if it ended well. `ports` is the
/// option that chooses the server's ports.
pub(crate) fn broken_off(host: &str, ended: &Ended, ports: &str) -> Option<Failure> {
    let Ended { exit, kind, refused, .. } = ended;
    let port = exit.server.port();
    Some(match (exit.cause, kind) {
        // A rove server tells how its program ended; a stock one never does.
        (Cause::PeerLeft, Peer::Rove) => Failure::new(
            format!("the session was ended on {host} before its program"),
            "Somebody ended the server there, or its host is going down; start again.",
        ),
        (Cause::Gone, _) => Failure::new(
            format!(
                "the session on {host} is gone: {}",
                ended.gone.as_deref().unwrap_or("it is not there any more")
            ),
            "",
        ),
        _ if exit.clean => return None,
        (Cause::Failed(failure), _) => Failure::new(format!("the session ended: {failure}"), ""),
        _ if !exit.contact && *refused > 0 => Failure::new(
            format!("{refused} datagrams came from {host}, none sealed with this session's key"),
            "Something else answers on that port; start again.",
        ),
        _ if !exit.contact => Failure::new(
            format!("nothing came back from {} on UDP port {port}", exit.server.ip()),
            format!(
                "ssh got there but UDP did not: open UDP port {port} in the firewalls before \
                 {host}, or choose ports they let through with {ports}."
            ),
        ),
        _ => Failure::new(
            format!("{host} did not confirm the end of the session"),
            "It may still be running there.",
        ),
    })
}

/// The login that starts a server on a host: for a shell, unless the caller changes it. The user's file says `own` of
/// the host.
pub(crate) fn login(
    host: &str,
    options: Vec<OsString>,
    ssh: &SshArgs,
    server: &ServerArgs,
    own: &HostConfig,
) -> Result<Login, Failure> {
    let random =
        os::random().map_err(|error| Failure::new(format!("no randomness: {error}"), ""))?;
    let named = server.server.as_ref().or(own.server.as_ref());
    Ok(Login {
        via: if server.local { local()? } else { Via::Ssh(split_words(&ssh.ssh)?) },
        options,
        host: host.to_owned(),
        family: ssh.family(),
        wires: server.wires(own),
        is_ssh_alone: false,
        instead: None,
        meant: None,
        hosts: Hosts::of_user(variable_os(environment::STATE_HOME), variable_os(environment::HOME)),
        report: Arc::default(),
        request: Request {
            nonce: Nonce::new(*random),
            key: None,
            server: match named {
                Some(line) => Server::named(line),
                None if server.local => this_program()?,
                None => Server::Found,
            },
            bind: server.bind_server.unwrap_or_default(),
            ports: server.udp_port.or(own.udp_port),
            colours: 0,
            locale: locale(),
            purpose: Purpose::Shell,
            agent: false,
            tariff: CostProfile::Flat,
            carry: false,
            keep: None,
            goal: Goal::Any,
            host: host.to_owned(),
            command: Vec::new(),
        },
    })
}

/// The same on this machine, by this very program.
pub(super) fn here(mut login: Login) -> Result<Login, Failure> {
    login.via = local()?;
    login.request.server = this_program()?;
    login.hosts = None;
    Ok(login)
}

/// The way to a server on this machine.
fn local() -> Result<Via, Failure> {
    match process::SHELL {
        Some(_) => Ok(Via::Local),
        None => Err(Failure::new(
            "no rove server runs on this system: it is a client's alone",
            "Name a host that runs Linux, macOS or FreeBSD.",
        )),
    }
}

/// This very program as a server: it need not be installed here.
fn this_program() -> Result<Server, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}"), ""))?;
    let program = quoted([program.as_os_str()]);
    Ok(Server::Rove(format!("{program} server").into()))
}
