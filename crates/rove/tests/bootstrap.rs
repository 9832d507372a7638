//! Starting a session when things go wrong: each time a clear message with the next step, status
//! 255, the terminal as it was, and no hang. `--ssh` programs play the other end.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod terminal;

use std::net::UdpSocket;

use terminal::{Directory, ROVE, Terminal};

/// A key that opens nothing.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw";

/// A public key that is nobody's.
const PUBLIC_KEY: &str = "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8";

/// Runs the remote command as sshd would, on this machine.
const OBEY: &str = r#"exec sh -c "$2""#;

/// Takes the nonce out of the remote command.
const NONCE: &str =
    r#"nonce=$(echo "$2" | grep -o "ROVE BEGIN [0-9a-f]*" | head -n 1 | cut -d " " -f 3)"#;

/// Runs rove with `ssh` as the body of its ssh, and `words` after the host; the server is this
/// rove.
fn rove(name: &str, ssh: &str, words: &[&str]) -> (Directory, Terminal) {
    rove_with(name, ssh, words, &[])
}

fn rove_with(name: &str, ssh: &str, words: &[&str], set: &[(&str, &str)]) -> (Directory, Terminal) {
    rove_words(name, ssh, &[&["127.0.0.1"], words].concat(), set)
}

/// The same, with all of rove's words.
fn rove_words(
    name: &str,
    ssh: &str,
    words: &[&str],
    set: &[(&str, &str)],
) -> (Directory, Terminal) {
    let directory = Directory::new(name);
    let program = directory.script("login", ssh);
    let (ssh, server) = (format!("--ssh={program}"), format!("--server={ROVE}"));
    let words = [&[ssh.as_str(), &server], words].concat();
    let terminal = Terminal::run(ROVE, &words, set);
    (directory, terminal)
}

#[track_caller]
fn assert_failed(mut terminal: Terminal, texts: &[&str]) -> String {
    let status = terminal.finish();
    let shown = terminal.text();
    assert_eq!(status, 255, "{shown}");
    for text in texts {
        assert!(shown.contains(text), "{text:?} is not in {shown}");
    }
    assert!(shown.contains("rove: "), "{shown}");
    terminal.assert_given_back();
    shown
}

#[test]
fn attempts_that_fail() {
    let answer = |line: &str| format!("{NONCE}; echo; echo ROVE BEGIN $nonce; {line}");
    for (index, (ssh, texts)) in [
        ("exit 255", &["could not log in to 127.0.0.1", "status 255", "gets you in"][..]),
        ("echo account closed; exit 1", &["status 1; it printed: account closed", "look at"]),
        ("exit 0", &["could not log in", "status 0"]),
        ("kill -9 $$", &["could not log in", "killed by a signal"]),
        ("sleep 40 & exit 3", &["could not log in", "status 3"]),
        ("yes", &["printed 16 MiB", "only in interactive shells"]),
        (&answer("exit 127"), &["no server started on 127.0.0.1", "status 127", "by hand"]),
        (&answer("echo no such key; exit 1"), &["no server started", "it printed: no such key"]),
        (
            &answer("echo ROVE NONE $nonce /bin:/usr/bin"),
            &["neither rove nor mosh-server", "/bin:/usr/bin", "Install one"],
        ),
        (
            &answer(
                "echo ROVE BROKEN $nonce /b/rove; echo ROVE BECAUSE $nonce /b/rove: cannot; \
                 echo ROVE NONE $nonce /bin",
            ),
            &["/b/rove on 127.0.0.1 does not run (cannot), and there is no mosh-server in /bin"],
        ),
        (&answer("echo ROVE 0 $nonce 1"), &["makes no sense", "login scripts"]),
        (&answer("echo ROVE 9 $nonce 1 x"), &["by version 9", "Update"]),
        (
            &answer(&format!("echo ROVE 0 $nonce 1 {KEY}; echo ROVE 0 $nonce 2 {KEY}")),
            &["two different answers", "login scripts"],
        ),
        (
            &answer(&format!("echo MOSH CONNECT 1 {KEY}; echo MOSH CONNECT 2 {KEY}")),
            &["two different answers"],
        ),
        (
            &answer(&format!("echo ROVE 0 $nonce 1 {KEY}; echo ROVE BEGIN $nonce x")),
            &["two different answers"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (_directory, terminal) = rove(&format!("fails-{index}"), ssh, &[]);
        assert_failed(terminal, texts);
    }
}

#[test]
fn words_that_cannot_work() {
    for (words, set, texts) in [
        (&["--udp-port=5:1", "h"][..], &[][..], &["first port", "above the last"][..]),
        (&["--udp-port=x", "h"], &[], &["a port is a number"]),
        (&["--udp-port=65536", "h"], &[], &["0 to 65535"]),
        (&["--predict=perhaps", "h"], &[], &["adaptive"]),
        (&["--frobnicate", "h"], &[], &["--frobnicate", "--help"]),
        (
            &["-p", "22", "-T", "h", "ls"],
            &[],
            &["rove: -T: ", "always has a terminal", "rove exec -T -p 22 h ls"],
        ),
        (&["-L", "nonsense", "h"], &[], &["nonsense"]),
        (&["-D", "99999", "h"], &[], &["99999"]),
        (&["-i", "a b", "-X", "h"], &[], &["rove: -X: ", "no windows yet", "ssh -X -i 'a b' h"]),
        (&["-Y", "h"], &[], &["rove: -Y: ", "no windows yet"]),
        (&["--", "-oProxyCommand=reboot"], &[], &["cannot begin with a dash"]),
        (&[], &[], &["HOST"]),
        (&["--ssh=", "h"], &[], &["names no program"]),
        (&["--ssh='a b", "h"], &[], &["open '"]),
        (
            &["--ssh=/nonexistent/ssh", "h"],
            &[],
            &["cannot run /nonexistent/ssh", "Install OpenSSH"],
        ),
        (
            &["-p22", "-a", "h", "ls"],
            &[("TERM", "dumb")],
            &[
                "cannot move its cursor",
                "prints: rove exec -t -p22 h ls",
                "TERM=xterm-256color rove -p22 -a h ls",
            ],
        ),
        (&["--client=x", "h"], &[], &["rove: --client: rove is its own client"]),
        (&["--experimental-remote-ip=x", "h"], &[], &["local", "remote", "proxy"]),
        (&["--predict=never", "cp", "a", "h:"], &[], &["--predict is an option for sessions"]),
        (&["-v", "cp", "a", "b"], &[], &["both ends of a copy are on this machine"]),
        (&["h"], &[("MOSH_PREDICTION_DISPLAY", "perhaps")], &["MOSH_PREDICTION_DISPLAY=perhaps"]),
        (&["h"], &[("ROVE_UDP_PORT", "x")], &["a port is a number"]),
    ] {
        let mut terminal = Terminal::run(ROVE, words, set);
        let status = terminal.finish();
        let shown = terminal.text();
        assert_eq!(status, 255, "{words:?}: {shown}");
        assert!(texts.iter().all(|text| shown.contains(text)), "{words:?}: {shown}");
        terminal.assert_given_back();
    }
}

/// The first value that fits the host counts, after the words and the environment; the file is read before ssh is run.
#[test]
fn settings_of_the_users_file() {
    let directory = Directory::new("config");
    let ports = r#"echo "$2" | grep -o -e "-p [0-9:]*" -e "my-server[ a-z-]*" | sort -u | tr "\\n" ,; exit 1"#;
    let ssh = format!("--ssh={}", directory.script("login", ports));
    let home = directory.path().to_owned();
    let config = format!("{home}/rove/config");
    std::fs::create_dir(format!("{home}/rove")).unwrap();
    let file =
        "Host 127.0.0.*\nUdpPort 61234\nServer my-server --there\nHost *\nUdpPort 1\nPredict never";
    for (text, words, set, texts) in [
        (file, &[&*ssh, "127.0.0.1"][..], ("A", "a"), &["printed: -p 61234,my-server --there"][..]),
        (file, &[&ssh, "--udp-port=7", "127.0.0.1"], ("A", "a"), &["-p 7"]),
        (file, &[&ssh, "127.0.0.1"], ("ROVE_UDP_PORT", "8"), &["-p 8"]),
        (file, &[&ssh, "h"], ("A", "a"), &["printed: -p 1,"]),
        (file, &["exec", &ssh, "h"], ("A", "a"), &["printed: -p 1,"]),
        (file, &["cp", "-S", &ssh[6..], "/etc/passwd", "h:"], ("A", "a"), &["printed: -p 1,"]),
        ("\nHistories 1", &["h"], ("A", "a"), &["config line 2: no setting is called histories"]),
        ("Host x\nUdpPort 5:1", &["h"], ("A", "a"), &["line 2: UdpPort 5:1", "rove help config"]),
    ] {
        std::fs::write(&config, text).unwrap();
        let mut terminal = Terminal::run(ROVE, words, &[("XDG_CONFIG_HOME", &home), set]);
        let status = terminal.finish();
        let shown = terminal.text();
        assert_eq!(status, 255, "{shown}");
        assert!(
            texts.iter().all(|text| shown.contains(text)),
            "{words:?}: {texts:?} not in {shown}"
        );
    }
    std::fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let mut terminal = Terminal::run(ROVE, &["h"], &[("XDG_CONFIG_HOME", &home)]);
    assert_eq!(terminal.finish(), 255);
    let shown = terminal.text();
    assert!(shown.contains("it can be written by other users"), "{shown}");
}

/// Called as mosh it needs a terminal, as mosh does: refused before ssh is run.
#[test]
fn mosh_without_a_terminal() {
    let directory = Directory::new("streams");
    let ssh = directory.script("login", "echo ssh was run; exit 1");
    let rove = format!("{} --ssh={ssh} -p 22 h ls", directory.link("mosh", ROVE));
    for (line, stream) in [
        (format!("{rove} </dev/null; echo status $?"), "standard input"),
        (format!("echo typed | {rove}; echo status $?"), "standard input"),
        (format!("{{ {rove}; echo status $? >&2; }} | cat"), "standard output"),
    ] {
        let mut terminal = Terminal::run("/bin/sh", &["-c", &line], &[]);
        terminal.finish();
        let shown = terminal.text();
        for text in [&format!("rove: {stream} is not a terminal"), "rove exec -T", "status 255"] {
            assert!(shown.contains(text), "{text:?} is not in {shown}");
        }
        assert!(!shown.contains("ssh was run"), "{shown}");
        terminal.assert_given_back();
    }
}

/// Words, pipes and status, with this rove as the server.
#[test]
fn commands_as_ssh_has_them() {
    let directory = Directory::new("as-ssh");
    let ssh = directory.script("login", OBEY);
    let rove = format!("{ROVE} --ssh={ssh} --server={ROVE} 127.0.0.1");
    let mosh = directory.link("mosh", ROVE);
    let mosh = format!("{mosh} --ssh={ssh} --server={ROVE} 127.0.0.1");
    for (line, shown) in [
        // On a terminal.
        (format!("{rove} echo '$((1 + 1))' '/[e]tc'"), "2 /etc"),
        (format!("{rove} 'echo $((1 + 1))' '/[e]tc'"), "2 /etc"),
        (format!("{rove} -- echo '$((1 + 1))' '/[e]tc'"), "$((1 + 1)) /[e]tc"),
        (format!("{rove} -- 'no such program'; echo status $?"), "status 127"),
        (format!("{mosh} echo '$((1 + 1))' '/[e]tc'"), "$((1 + 1)) /[e]tc"),
        // Without one.
        (format!("{rove} 'seq 1 3; exit 5' | paste -sd ,; echo ${{PIPESTATUS[0]}}"), "1,2,3\n5"),
        (format!("echo typed | {rove} tr a-z A-Z"), "TYPED"),
        (format!("echo typed | {rove} -- printf '<%s>' '$HOME' '*'"), "<$HOME><*>"),
        (format!("echo 'echo from a $((1 + 1)) shell' | {rove} | cat"), "from a 2 shell"),
        (format!("{rove} tty </dev/null"), "not a tty"),
        (format!("{rove} -t 'test -t 0 && echo on one' | cat"), "on one"),
        (format!("{rove} -tt 'test -t 0 && echo on one' </dev/null"), "on one"),
    ] {
        let mut terminal = Terminal::run("bash", &["--norc", "-c", &line], &[]);
        terminal.finish();
        let all = terminal.text();
        assert!(all.contains(shown), "{line}: {shown:?} is not in {all:?}");
        terminal.assert_modes_given_back();
    }
}

/// The manual goes through the user's pager on a terminal, and is plain text in a pipe.
#[test]
fn the_manual_is_in_the_program() {
    for (line, set, text) in [
        (format!("{ROVE} help"), "tr a-z A-Z | head -n 20", "A MOBILE SHELL"),
        (format!("{ROVE} help exec"), "cat", "rove-ssh"),
        (format!("{ROVE} help | head -n 30"), "false", "a mobile shell"),
        (format!("{ROVE} help cp"), "/nonexistent/pager", "copy files between"),
        (format!("{ROVE} help sh"), "cat", "possible values"),
    ] {
        let mut terminal = Terminal::run("sh", &["-c", &line], &[("PAGER", set), ("MANPAGER", "")]);
        terminal.finish();
        let shown = terminal.text();
        assert!(shown.contains(text), "{line}: {shown}");
    }
}

/// Said once ssh has not found the name, and of names that no host has.
#[test]
fn a_command_that_is_misspelt() {
    for (words, said, is_slip) in [
        (
            &["-l", "u", "exce", "build7", "ls"][..],
            "there is no host exce. Did you mean: rove exec -l u build7 ls",
            true,
        ),
        (&["exce"], "could not log in to exce", false),
        (&["nosuchhost.invalid", "build7"], "could not log in to nosuchhost.invalid", false),
    ] {
        let mut terminal = Terminal::run(ROVE, words, &[]);
        assert_eq!(terminal.finish(), 255);
        let shown = terminal.text();
        assert!(shown.contains("Could not resolve hostname"), "{shown}");
        assert!(shown.contains(said), "{shown}");
        assert_eq!(shown.contains("Did you mean"), is_slip, "{shown}");
    }
}

/// What to do by hand repeats the options that lead there.
#[test]
fn hints_repeat_the_options() {
    let directory = Directory::new("hints");
    let nonce = NONCE;
    let ssh = directory.script(
        "ssh",
        &format!("for last; do :; done; set -- h \"$last\"; {nonce}; case $last in *ROVE*) ;; *) exit;; esac; echo; echo ROVE BEGIN $nonce; echo ROVE NONE $nonce /bin"),
    );
    let ssh = format!("--ssh={ssh}");
    let words = [ssh.as_str(), "-p", "2222", "-l", "u", "-i", "a key", "127.0.0.1"];
    let terminal = Terminal::run(ROVE, &words, &[]);
    assert_failed(terminal, &["rove install --ssh=", "-p 2222 -l u -i 'a key' 127.0.0.1)"]);
    let directory = Directory::new("hints-closed");
    let closed = directory.script("ssh", "exit 255");
    let ssh = format!("--ssh={closed}");
    let words = [ssh.as_str(), "-p", "2222", "-i", "a key", "127.0.0.1"];
    let terminal = Terminal::run(ROVE, &words, &[]);
    assert_failed(terminal, &["ssh -p 2222 -i 'a key' 127.0.0.1` gets you in"]);
}

/// ssh's own message is shown untouched, before ours.
#[test]
fn openssh_that_does_not_get_in() {
    for (words, theirs, ours) in [
        (
            &["nosuchhost.invalid"][..],
            "Could not resolve hostname",
            "could not log in to nosuchhost.invalid",
        ),
        (&["-p", "1", "127.0.0.1"], "Connection refused", "could not log in to 127.0.0.1"),
        (&["-o", "NoSuchOption=1", "127.0.0.1"], "Bad configuration option", "could not log in"),
    ] {
        let mut terminal = Terminal::run(ROVE, words, &[]);
        assert_eq!(terminal.finish(), 255);
        let shown = terminal.text();
        let (theirs, ours) = (shown.find(theirs), shown.find(ours));
        assert!(theirs.is_some() && theirs < ours, "{shown}");
        terminal.assert_given_back();
    }
}

/// What the user's configuration runs for `ssh -G` may ask something: it is run once.
#[test]
fn the_configuration_is_asked_for_once() {
    let directory = Directory::new("asked");
    let asked = format!("{}/asked", directory.path());
    let ssh = directory.script(
        "ssh",
        &format!(
            "for word; do [ \"$word\" = -G ] && echo once >>{asked} && exec echo hostname 127.0.0.1; done\n\
             exec sh -c \"$word\""
        ),
    );
    let (ssh, server) = (format!("--ssh={ssh}"), format!("--server={ROVE}"));
    let words = [ssh.as_str(), &server, "nosuchhost.invalid", "exit 6"];
    let mut terminal = Terminal::run(ROVE, &words, &[]);
    assert_eq!(terminal.finish(), 6, "{}", terminal.text());
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "once\n");
    terminal.assert_given_back();
}

/// A configuration that is not known is told, and is the end where there would be nothing but what it
/// forwards; octets that are no UTF-8 keep nobody from reading the rest.
#[test]
fn a_configuration_that_cannot_be_read() {
    let directory = Directory::new("unread");
    for (index, (asked, words, status, says)) in [
        ("exit 3", &["127.0.0.1", "exit 6"][..], 6, "ssh -G ended with exit status: 3"),
        ("exit 3", &["-N", "127.0.0.1"], 255, "not known: ssh -G ended with exit status: 3"),
        // It goes on, up to a wish that is refused for another reason.
        ("exit 3", &["-N", "-R", "*:1:h:1", "127.0.0.1"], 255, "left out: ssh -G ended with"),
        (
            "printf 'localforward a\\351b\\n'",
            &["127.0.0.1", "exit 6"],
            6,
            "forwards \"a\u{fffd}b\"",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(
            "for word; do [ \"$word\" = -G ] && {{ {asked}; exit; }}; done; exec sh -c \"$word\""
        );
        let ssh = directory.script("ssh", &body);
        let (ssh, server) = (format!("--ssh={ssh}"), format!("--server={ROVE}"));
        let words = [&[ssh.as_str(), &server], words].concat();
        let mut terminal = Terminal::run(ROVE, &words, &[]);
        assert_eq!(terminal.finish(), status, "{index}: {}", terminal.text());
        assert!(terminal.text().contains(says), "{says:?} is not in {}", terminal.text());
        terminal.assert_given_back();
    }
}

#[test]
fn sessions_that_start_in_spite_of_it_all() {
    let noise = "head -c 1000000 /dev/zero | tr '\\0' x; printf 'no newline at the end'";
    let lies = format!(
        "echo MOSH CONNECT 60001 {KEY}; echo ROVE 0 00000000000000000000000000000000 60001 {KEY}; \
         echo ROVE BEGIN 00000000000000000000000000000000 1 2 3 4"
    );
    let lies_at_length = format!("i=0; while [ $i -lt 20000 ]; do {lies}; i=$((i+1)); done");
    for (index, (before, set, note)) in [
        ("", &[][..], None),
        (noise, &[], None),
        (&lies, &[], None),
        (&lies_at_length, &[], None),
        ("", &[("TERM", "")], Some("rove: TERM is not set")),
        ("", &[("TERM", "no-such-terminal")], Some("rove: TERM=no-such-terminal is not known")),
        ("", &[("LC_ALL", "xx_XX.nonsense")], None),
    ]
    .into_iter()
    .enumerate()
    {
        let ssh = format!("{before}\n{OBEY}");
        let (_directory, mut terminal) =
            rove_with(&format!("starts-{index}"), &ssh, &["exit 7"], set);
        let status = terminal.finish();
        assert_eq!(status, 7, "{before:?} {set:?}: {}", terminal.text());
        assert_noted(&terminal, note, "TERM=xterm-256color rove");
        terminal.assert_given_back();
    }
}

/// Fails unless `note` was told in one line with the next step, before the session had the screen;
/// without one, unless nothing was told.
#[track_caller]
fn assert_noted(terminal: &Terminal, note: Option<&str>, next: &str) {
    let shown = terminal.text();
    let before = shown.split("\x1b[?").next().unwrap();
    let told: Vec<&str> = before.lines().filter(|line| line.starts_with("rove: ")).collect();
    match note {
        None => assert!(told.is_empty(), "{shown}"),
        Some(note) => {
            assert!(told.len() == 1 && told[0].contains(note) && told[0].contains(next), "{shown}");
        }
    }
}

#[test]
fn a_window_of_no_size() {
    let directory = Directory::new("window");
    let (ssh, server) =
        (format!("--ssh={}", directory.script("login", OBEY)), format!("--server={ROVE}"));
    let words = [ssh.as_str(), &server, "127.0.0.1", "stty size; exit 4"];
    let note = Some("does not know its size, so 80 by 24 is taken");
    for (cols, rows, note) in [(0, 0, note), (0, 24, note), (1, 1, None), (65_535, 65_535, None)] {
        let mut terminal = Terminal::sized(cols, rows, ROVE, &words, &[]);
        assert_eq!(terminal.finish(), 4, "{}", terminal.text());
        assert_noted(&terminal, note, "stty rows R cols C");
        terminal.assert_given_back();
    }
}

/// The login program has the terminal to itself: it asks there, and gets what is typed.
#[test]
fn prompts_are_the_login_programs_own() {
    let ssh = format!(
        "stty -echo </dev/tty; printf 'Password: ' >/dev/tty; \
         read word </dev/tty; stty echo </dev/tty; \
         [ \"$word\" = secret ] || exit 255; {OBEY}"
    );
    let (_directory, mut terminal) = rove("prompt", &ssh, &["exit 5"]);
    terminal.expect("Password: ");
    terminal.type_keys("secret\n");
    assert_eq!(terminal.finish(), 5, "{}", terminal.text());
    assert!(!terminal.text().contains("secret"));
    terminal.assert_given_back();
}

/// A host where ssh works and UDP does not.
#[test]
fn udp_that_does_not_get_through() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let ssh = format!("{NONCE}; echo ROVE BEGIN $nonce; echo ROVE 0 $nonce {port} {KEY}");
    let (_directory, mut terminal) = rove("silent", &ssh, &["-vvv"]);
    terminal.expect("Nothing received");
    let texts = [&format!("nothing came back from 127.0.0.1 on UDP port {port}"), "--udp-port"];
    let shown = assert_failed(terminal, &texts);
    assert!(!shown.contains(KEY), "the trace tells the key");
}

#[test]
fn a_wrong_key() {
    for (name, version, key, words) in [
        ("wrong-key", 0, KEY, &["--mosh-wire", "--", "127.0.0.1"][..]),
        ("wrong-public-key", 1, PUBLIC_KEY, &["127.0.0.1"]),
    ] {
        let ssh =
            format!(r#"sh -c "$2" | sed -E 's/^(ROVE {version} [^ ]* [^ ]*) [^ ]*/\1 {key}/'"#);
        let (_directory, terminal) = rove_words(name, &ssh, words, &[]);
        assert_failed(terminal, &["nothing came back from 127.0.0.1", "--udp-port"]);
    }
}

/// `--native` takes no other wire, and says why.
#[test]
fn a_host_without_the_native_wire() {
    let old = r#"exec sh -c "$(echo "$2" | sed 's/ --key=[^ ]*//')""#;
    let stock = format!("{NONCE}; echo ROVE BEGIN $nonce; echo MOSH CONNECT 60001 {KEY}");
    for (name, ssh, says) in [
        ("old", old, "too old for the native wire"),
        ("stock", &stock, "only mosh-server is there"),
    ] {
        let (_directory, terminal) = rove_words(name, ssh, &["--native", "127.0.0.1"], &[]);
        let next = "127.0.0.1. Or leave --native out";
        assert_failed(terminal, &[says, ": rove install --ssh=", next]);
    }
    // Without it a session starts.
    let (_directory, mut terminal) = rove_words("old-any", old, &["127.0.0.1", "exit 7"], &[]);
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
}

/// A host that has lost its rove since the last time: its session begins, and the user is told on the
/// screen that it has, unless the mosh wire was asked for.
#[test]
fn a_host_that_had_the_native_wire() {
    let old = r#"exec sh -c "$(echo "$2" | sed 's/ --key=[^ ]*//')""#;
    let state = Directory::new("state");
    let remembered = [("XDG_STATE_HOME", state.path())];
    let says = "127.0.0.1 had rove's own protocol before";
    for (name, ssh, words, told) in [
        ("had-new-host", old, &["127.0.0.1"][..], false),
        ("had-native", OBEY, &["127.0.0.1"], false),
        ("had-still", OBEY, &["127.0.0.1"], false),
        ("had-lost", old, &["127.0.0.1"], true),
        ("had-asked", old, &["--mosh-wire", "127.0.0.1"], false),
    ] {
        let words = [words, &["echo begun; read line; exit 7"]].concat();
        let (_directory, mut terminal) = rove_words(name, ssh, &words, &remembered);
        if told {
            // On the standard error, and in the bar.
            terminal.expect(says);
            terminal.expect(says);
        }
        terminal.expect_screen("begun", |seen| seen.screen().text().join("\n").contains("begun"));
        terminal.type_keys("\r");
        assert_eq!(terminal.finish(), 7, "{name}: {}", terminal.text());
        assert_eq!(terminal.text().contains(says), told, "{name}: {}", terminal.text());
    }
}

#[test]
fn a_server_that_never_answers() {
    let ssh = format!("{NONCE}; echo ROVE BEGIN $nonce; sleep 100");
    let (_directory, terminal) = rove("never", &ssh, &[]);
    assert_failed(terminal, &["no server started on 127.0.0.1", "still running"]);
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, status) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let (_directory, mut terminal) =
            rove(&format!("signal-{signal}"), OBEY, &["echo ready; sleep 100"]);
        terminal.expect("\x1b[?1h");
        let pid = terminal.pid();
        let kill = format!("kill -{signal} {pid}");
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(terminal.finish(), status, "{}", terminal.text());
        terminal.assert_given_back();
    }
}

/// `-v` tells the steps and never the key.
#[test]
fn the_trace_tells_the_steps() {
    let (_directory, mut terminal) = rove("trace", OBEY, &["-v", "exit 0"]);
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    let shown = terminal.text();
    for step in [
        "running",
        "logged in",
        "a server has answered",
        "first heard from",
        "ended cleanly",
        "round trip",
    ] {
        assert!(shown.contains(step), "{step:?} is not in {shown}");
    }
}
