//! The completions and the man page say what the program takes. `ROVE_WRITE_DOCUMENTS=1 cargo test
//! -p rove-shell --test documents` writes the completions and the manual in the program anew.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

use std::path::{Path, PathBuf};

use clap_complete::Shell;

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file)
}

/// bash completes host names only if it is told to; clap's script leaves that out.
const BASH_HOSTS: &str = r#"
# Host names, from ssh's configuration and what bash knows itself.
_rove_hosts() {
    local config="${HOME}/.ssh/config"
    if [[ -r ${config} ]]; then
        command awk 'tolower($1) == "host" {
            for (i = 2; i <= NF; i++) if ($i !~ /[*?!]/) print $i
        }' "${config}"
    fi
    compgen -A hostname
}

_rove_with_hosts() {
    _rove "$@"
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    [[ ${current} == -* ]] && return
    # What it copies are files, which bash completes itself.
    [[ ${COMP_WORDS[1]} == cp && ${COMP_CWORD} -gt 1 ]] && COMPREPLY=() && return
    if [[ ${previous} == @(rove|-J|--) || ${#COMPREPLY[@]} -eq 0 ]]; then
        local user=""
        [[ ${current} == *@* ]] && user="${current%@*}@"
        COMPREPLY=($(compgen -P "${user}" -W "$(_rove_hosts)" -- "${current#"${user}"}"))
    fi
}

complete -F _rove_with_hosts -o nosort -o bashdefault -o default rove
"#;

/// fish completes the host only where it is the first word.
const FISH_HOSTS: &str = r#"
complete -c rove -n "test (count (commandline -opc)) -eq 1" -f -a "(__fish_print_hostnames)"
"#;

#[test]
fn completions_are_current() {
    for (shell, file, hosts) in [
        (Shell::Bash, "completions/rove.bash", BASH_HOSTS),
        (Shell::Zsh, "completions/_rove", ""),
        (Shell::Fish, "completions/rove.fish", FISH_HOSTS),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut rove::testing::command(), "rove", &mut script);
        let mut script = String::from_utf8(script).unwrap();
        script.push_str(hosts);
        let file = docs(file);
        if std::env::var_os("ROVE_WRITE_DOCUMENTS").is_some() {
            std::fs::write(&file, &script).unwrap();
        }
        let current = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(current == script, "{} is not what the options say", file.display());
    }
}

#[test]
fn the_man_pages_have_every_option() {
    let rove = rove::testing::command();
    let copy = rove.find_subcommand("cp").unwrap();
    let exec = rove.find_subcommand("exec").unwrap();
    let doctor = rove.find_subcommand("doctor").unwrap();
    let install = rove.find_subcommand("install").unwrap();
    for (page, command, rest) in [
        ("man/rove.1", &rove, None),
        ("man/rove-cp.1", copy, None),
        ("man/rove-exec.1", exec, Some(&rove)),
        ("man/rove-doctor.1", doctor, Some(&rove)),
        ("man/rove-install.1", install, Some(&rove)),
        ("man/rove-attach.1", rove.find_subcommand("ls").unwrap(), Some(&rove)),
        ("man/rove-attach.1", rove.find_subcommand("attach").unwrap(), Some(&rove)),
        ("man/rove-attach.1", rove.find_subcommand("new").unwrap(), Some(&rove)),
        ("man/rove-attach.1", rove.find_subcommand("kill").unwrap(), Some(&rove)),
    ] {
        has_every_option(page, command, rest);
    }
}

/// Options that `elsewhere` has, too, need no entry.
fn has_every_option(file: &str, command: &clap::Command, elsewhere: Option<&clap::Command>) {
    let is_elsewhere = |option: &clap::Arg| {
        elsewhere
            .is_some_and(|it| it.get_arguments().any(|other| other.get_id() == option.get_id()))
    };
    let page = std::fs::read_to_string(docs(file)).unwrap();
    let entries: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix(".It "))
        .map(|entry| entry.split(' ').collect())
        .collect();
    // mdoc writes -x as "Fl x" and --xyz as "Fl -xyz".
    let has =
        |name: &str| entries.iter().any(|words| words.windows(2).any(|two| two == ["Fl", name]));
    for option in command.get_arguments().filter(|it| !it.is_hide_set() && !is_elsewhere(it)) {
        let long = option.get_long().map(|long| format!("-{long}"));
        for name in long.into_iter().chain(option.get_short().map(String::from)) {
            assert!(has(&name), "-{name} has no entry in {file}");
        }
        for variable in option.get_env().into_iter().filter_map(|name| name.to_str()) {
            assert!(page.contains(variable), "{variable} is not in {file}");
        }
    }
}

/// The man pages and their sections.
const MANUAL: [(&str, &str); 8] = [
    ("rove", "1"),
    ("rove-attach", "1"),
    ("rove-cp", "1"),
    ("rove-doctor", "1"),
    ("rove-exec", "1"),
    ("rove-install", "1"),
    ("rove-server", "1"),
    ("rove_config", "5"),
];

/// The text of the man pages, which `rove help` shows.
#[test]
fn the_manual_in_the_program_is_current() {
    for (name, section) in MANUAL {
        let output = std::process::Command::new("timeout")
            .args(["20", "groff", "-mandoc", "-Tascii", "-P-cbou", "-rLL=78n"])
            .arg(docs(&format!("man/{name}.{section}")))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let file = docs(&format!("man/text/{name}.txt"));
        if std::env::var_os("ROVE_WRITE_DOCUMENTS").is_some() {
            std::fs::write(&file, &output.stdout).unwrap();
        }
        let current = std::fs::read(&file).unwrap_or_default();
        assert!(current == output.stdout, "{} is not what the man page says", file.display());
    }
}

/// The pages are clean roff, as far as groff's own checks go.
#[test]
fn the_man_pages_are_clean() {
    for (name, section) in MANUAL {
        let page = format!("man/{name}.{section}");
        let output = std::process::Command::new("timeout")
            .args(["20", "groff", "-mandoc", "-Tutf8", "-ww", "-z"])
            .arg(docs(&page))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{page}: {said}");
    }
}
