//! What `rove doctor` looks at on this machine.

use crate::os::threads;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rove_term::Ability;
use rove_term::Colors;
use rove_term::probe::DeviceReports;

use crate::cli::config::HostConfig;
use crate::cli::environment::{term, terminal, variable, variable_os};
use crate::cli::values::split_words;
use crate::doctor::{Check, Report};
use crate::os::sandbox::{Reach, confine};
use crate::os::{process, tty};
use crate::printable::printable;

/// Characters shown of a program's version.
const VERSION_CHARS_MAX: usize = 100;

/// Looks at this machine; `host` is where the user wants to go, and `ssh` how.
pub(super) fn look(host: Option<&str>, ssh: &str, report: &mut Report) {
    report.add(this());
    report.add(user_terminal());
    report.add(locale());
    report.add(openssh(ssh));
    report.add(settings(host));
    report.add(sandbox());
    report.add(names());
}

/// Which rove this is, and whether it is the one that the user's shell finds.
fn this() -> Check {
    let own = std::env::current_exe().unwrap_or_default();
    let shown = own.display();
    let says = format!("{} ({OS}, {ARCH}) at {shown}", env!("CARGO_PKG_VERSION"));
    let check = Check::ok("rove", "rove", says);
    match found("rove")
        .map(|path| (fs::canonicalize(&path).ok() == fs::canonicalize(&own).ok(), path))
    {
        Some((true, _)) => check,
        Some((false, other)) => check.but(format!(
            "Your shell finds {} first: remove the older of the two",
            other.display()
        )),
        None => check.but("It is not on the PATH; ~/.local/bin and /usr/local/bin mostly are"),
    }
}

fn user_terminal() -> Check {
    let check = |says: String| Check::ok("terminal", "terminal", says);
    if let Some(stream) = tty::missing_stream() {
        return check(format!("standard {stream} is none, so it was asked nothing"))
            .but("A session needs one; rove exec works without");
    }
    let term = term();
    if matches!(term.as_str(), "dumb" | "") {
        return check(format!("TERM={term} says that it cannot move its cursor"))
            .fails("If it can, say what it is: TERM=xterm-256color");
    }
    let dialect = terminal();
    let told = tty::question(&dialect).unwrap_or_default();
    let dialect = dialect.told(&told);
    let can = |ability, name: &str| match dialect.can(ability) {
        true => name.to_owned(),
        false => format!("no {name}"),
    };
    let colors = match dialect.colors() {
        Colors::Monochrome => "no colours",
        Colors::Eight => "8 colours",
        Colors::Sixteen => "16 colours",
        Colors::Indexed => "256 colours",
        Colors::Direct => "direct colours",
    };
    let known = told.known_name().map_or(String::new(), |name| format!(" ({name})"));
    let size = tty::window();
    let shown = size.map_or("of unknown size".into(), |it| format!("{}x{}", it.cols, it.rows));
    let links = can(Ability::Links, "links");
    let (whole, growing) = (whole(&told), growing(&told));
    let check = check(format!("{term}{known}, {shown}, {whole}, {colors}, {links}, {growing}"));
    match size {
        None => check.but("Tell it its size: stty rows R cols C"),
        Some(_) => check,
    }
}

/// Whether frames appear as a whole.
fn whole(told: &DeviceReports) -> &'static str {
    match (told.synchronizes(), told.has_answered()) {
        (Some(true), _) => "frames appear whole (mode 2026)",
        (Some(false), _) | (None, true) => "no mode 2026",
        (None, false) => "it answers no questions",
    }
}

/// Whether lines come back from the terminal's history when its window grows.
fn growing(told: &DeviceReports) -> &'static str {
    match told.takes_lines_back() {
        Some(true) => "takes lines back when it grows",
        Some(false) => "takes no lines back when it grows",
        None => "not known whether it takes lines back when it grows",
    }
}

fn locale() -> Check {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set =
        named.iter().find_map(|name| Some((name, variable(name).filter(|it| !it.is_empty())?)));
    let is_utf8 = |value: &str| {
        let letters = value.to_ascii_lowercase().replace('-', "");
        letters.ends_with("utf8")
    };
    let check = |says: String| Check::ok("locale", "locale", says);
    match set {
        Some((name, value)) if is_utf8(&value) => check(format!("{name}={value}")),
        Some((name, value)) => {
            check(format!("{name}={value} is not UTF-8; on hosts C.UTF-8 is used"))
                .but("Set LANG to one of `locale -a` that is")
        }
        None => check("none is set; on hosts C.UTF-8 is used".into())
            .but("Set LANG to one of `locale -a` that ends in utf8"),
    }
}

/// The program that logs in.
fn openssh(line: &str) -> Check {
    let check = |says: String| Check::ok("ssh-here", "ssh here", says);
    let words = match split_words(line) {
        Ok(words) => words,
        Err(failure) => return check(failure.what).fails(failure.next),
    };
    let Some(program) = words.first() else {
        return check("no program is named".into()).fails("Name one: --ssh=COMMAND");
    };
    if !process::is_called(Path::new(program), "ssh") {
        return check(format!("{line} logs in, and is told none of ssh's options"));
    }
    let program = process::program_file(program);
    let mut command = Command::new(&program);
    match command.arg("-V").stdin(Stdio::null()).output() {
        Ok(output) => check(printable(output.stderr.trim_ascii(), VERSION_CHARS_MAX)),
        Err(error) => check(format!("cannot run {}: {error}", program.display()))
            .fails("Install OpenSSH's client, or name another program: --ssh=COMMAND"),
    }
}

/// The user's own settings.
fn settings(host: Option<&str>) -> Check {
    let check = |says: String| Check::ok("settings", "settings", says);
    let Some(place) = HostConfig::place() else { return check("no home to look into".into()) };
    match HostConfig::of_user(host.unwrap_or_default()) {
        Err(failure) => check(failure.what).fails(failure.next),
        Ok(_) if place.exists() => check(place.display().to_string()),
        Ok(_) => check(format!("none ({} is not there)", place.display())),
    }
}

/// Whether a session's client gives up all that it does without. A thread of its own tries it, since it gives up for good.
fn sandbox() -> Check {
    let tried = threads::spawn("sandbox", || confine(&Reach::Datagrams)).map(|it| it.join());
    let check = |says: String| Check::ok("sandbox", "sandbox", says);
    match tried {
        Ok(Ok(confined)) if confined.is_whole() => check(confined.to_string()),
        Ok(Ok(confined)) => check(confined.to_string()).but(
            "Sessions work; a kernel with Landlock and seccomp (Linux 5.13) confines their client",
        ),
        Ok(Err(_)) | Err(_) => check("it could not be tried".into()).but("Try again"),
    }
}

/// What mosh's names mean here.
fn names() -> Check {
    let own = std::env::current_exe().and_then(fs::canonicalize).ok();
    let told = ["mosh", "mosh-client", "mosh-server"].map(|name| match found(name) {
        None => format!("no {name}"),
        Some(path) if own.is_some() && fs::canonicalize(&path).ok() == own => {
            format!("{name} is this rove")
        }
        Some(path) => format!("{name} is {}", path.display()),
    });
    Check::ok("mosh-names", "mosh's names", told.join(", "))
}

/// The first program of this name on the PATH.
fn found(name: &str) -> Option<PathBuf> {
    let path = variable_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join(name)).find(|path| path.is_file())
}
