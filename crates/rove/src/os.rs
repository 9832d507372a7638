//! The system calls that the compiler cannot check, each behind a safe function: the detaching fork, a
//! program put on its own terminal, secrets taken out of the environment, memory kept off disk (`locked`),
//! rights given up, files written out early, and look-ups of the C library. `unsafe` is in this file,
//! `landlock` and `locked` alone; they know nothing of sessions, keys or protocols.
#![allow(unsafe_code)]

pub(crate) mod clock;
mod landlock;
pub(crate) mod locked;
pub(crate) mod lookup;
pub(crate) mod names;
pub(crate) mod netlink;
pub(crate) mod sandbox;
pub(crate) mod signals;
pub(crate) mod socket_file;
pub(crate) mod terminfo;
pub(crate) mod tty;

use std::ffi::{CStr, OsString, c_char};
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use rustix::process::{DumpableBehavior, Resource, Rlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use zeroize::{Zeroize, Zeroizing};

pub use landlock::Landlocked;
pub(crate) use landlock::{Left, landlock};

/// The soft limit on core files before [`harden`], for the programs that we start.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimit(Option<u64>);

impl CoreLimit {
    /// The limit as it is now.
    pub fn current() -> CoreLimit {
        CoreLimit(rustix::process::getrlimit(Resource::Core).current)
    }

    /// Sets the soft limit of this process back. Async-signal-safe: one system call.
    pub fn restore(self) -> io::Result<()> {
        let now = rustix::process::getrlimit(Resource::Core);
        let limit = Rlimit { current: self.0, maximum: now.maximum };
        Ok(rustix::process::setrlimit(Resource::Core, limit)?)
    }
}

/// Keeps this process's memory from others of the same user: no core files (a soft limit of 0) and no
/// `ptrace` or `/proc/PID/mem` (`PR_SET_DUMPABLE` 0). The kernel takes the latter back by itself when
/// a program is executed.
pub fn harden() -> io::Result<CoreLimit> {
    let was = CoreLimit::current();
    let maximum = rustix::process::getrlimit(Resource::Core).maximum;
    let none = Rlimit { current: Some(0), maximum };
    rustix::process::setrlimit(Resource::Core, none)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(was)
}

/// Takes a variable out of the environment and wipes every copy of it from the environment block, so
/// that neither children nor `/proc/PID/environ` have it. `None` if it is not set.
///
/// # Panics
/// In a process with more than one thread: another could be reading the environment.
pub(crate) fn take_secret(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    assert!(is_single_threaded(), "the environment is changed before threads start");
    assert!(!name.is_empty() && !name.contains(['=', '\0']), "not a variable's name: {name:?}");
    let mut secret = None;
    let mut entries: Vec<*mut c_char> = Vec::new();
    // SAFETY: `environ` is null or a null-terminated array of NUL-terminated strings, and no other
    // thread exists that could change it while we walk.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if let Some(value) =
                text.strip_prefix(name.as_bytes()).and_then(|t| t.strip_prefix(b"="))
            {
                secret.get_or_insert_with(|| locked::within(|| Zeroizing::new(value.to_vec())));
                entries.push(*entry);
            }
            entry = entry.add(1);
        }
        // Unset first: the C library may look at the names while it removes them.
        std::env::remove_var(name);
    }
    for entry in entries {
        // SAFETY: the string was in the environment a moment ago, nothing else points to it, and its
        // memory (the initial stack, or an allocation that the C library leaks) is writable.
        unsafe {
            let length = libc::strlen(entry);
            std::slice::from_raw_parts_mut(entry.cast::<u8>(), length).zeroize();
        }
    }
    secret
}

/// Makes malloc keep up to 64 MiB of freed memory in each of its arenas (mallopt(3)), for a short-lived
/// process; a copy of 1 GB takes 5 MB more. Bulk frees blocks all the time, and getting each from the system
/// again, zeroed, takes an eighth of a copy's time. C libraries other than glibc decide for themselves.
pub(crate) fn keep_freed_memory() {
    // SAFETY: both numbers are settings of malloc, which it may be given at any time.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// Makes malloc give the pages of freed memory back to the system (malloc_trim(3)), in the middle of its heap too.
/// For a process that goes to rest; a session of one process is asleep most of its life.
pub(crate) fn give_back_freed_memory() {
    // SAFETY: it touches freed memory only.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The process that [`detach`] returned in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fork {
    /// The process that called it.
    Parent {
        /// The new process.
        child: u32,
    },
    /// The new one, in a terminal session of its own.
    Child,
}

/// Splits off a process that outlives this one: a copy that leads a new session, without a terminal.
///
/// # Errors
/// The system's, and `Other` in a process with more than one thread: the copy would have only this one,
/// and locks held by the others for good.
pub(crate) fn detach() -> io::Result<Fork> {
    if !is_single_threaded() {
        return Err(io::Error::other("only a process with one thread can detach"));
    }
    // SAFETY: with one thread the copy is whole, so it may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // It fails only for the leader of a process group, which a new process never is.
            let _ = rustix::process::setsid();
            locked::lock_again();
            Ok(Fork::Child)
        }
        child => Ok(Fork::Parent { child: child.unsigned_abs() }),
    }
}

/// Closes every open file but the standard streams: a login script's `exec 3>&1` would
/// otherwise keep ssh waiting for as long as we live. Best effort: Linux before 5.9 cannot.
///
/// For the start of the program, before it has opened anything itself; hence not public.
pub(crate) fn close_inherited() {
    // SAFETY: as said above, nobody in this process owns these.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
}

/// Ignores SIGHUP, so that we outlive the login that started us. The Rust runtime ignores SIGPIPE already.
pub(crate) fn ignore_hangup() {
    // SAFETY: `SIG_IGN` runs no code of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Makes `command`, whose standard input is a terminal, the leader of a session that this terminal
/// controls, with every signal at its default and core files as they were.
///
/// A session of its own keeps the program from pushing input (TIOCSTI) into any terminal but its own.
pub(crate) fn lead_terminal_session(command: &mut Command, cores: CoreLimit) {
    let prepare = move || {
        lead(cores)?;
        // SAFETY: descriptor 0 is open: the command's standard input was put there before.
        let stdin = unsafe { BorrowedFd::borrow_raw(libc::STDIN_FILENO) };
        Ok(rustix::process::ioctl_tiocsctty(stdin)?)
    };
    // SAFETY: `prepare` only makes system calls: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
}

/// Makes `command` the leader of a session without a terminal, with every signal at its default and core
/// files as they were.
pub(crate) fn lead_session(command: &mut Command, cores: CoreLimit) {
    // SAFETY: `lead` only makes system calls: no allocation, no locks.
    unsafe { command.pre_exec(move || lead(cores)) };
}

/// Starts a session in a new process. Async-signal-safe: system calls only.
fn lead(cores: CoreLimit) -> io::Result<()> {
    // What the ignoring parent or a shell's `&` had us ignore must not be ignored by a login shell.
    // SIGKILL and SIGSTOP refuse, rightly.
    for signal in 1..=SIGNAL_LAST {
        // SAFETY: `SIG_DFL` runs no code of ours; async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    rustix::process::setsid()?;
    cores.restore()
}

/// The highest of the classic signals; the real-time ones are never ignored by accident.
const SIGNAL_LAST: i32 = 31;

/// Sends `signal` to the foreground programs of the terminal behind `master`.
pub(crate) fn signal_foreground(
    master: BorrowedFd<'_>,
    signal: rustix::process::Signal,
) -> io::Result<()> {
    // SAFETY: TIOCSIG takes the signal's number itself, no pointer.
    let done = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSIG, signal.as_raw()) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the system start writing a part of a file to its disk, without waiting, so that the final sync
/// waits less. The final sync reports failures.
pub(crate) fn begin_writing(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes an open file and numbers, no pointer.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let (_, _, _): (_, i64, i64) = (file, offset, length);
}

/// The most octets that a crash writes to the terminal; undoing a session takes a third.
const LAST_WORDS_MAX: usize = 2048;

/// Octets to write at a time to a terminal that other programs share by one open file: the system reports it
/// writable with this much room (Linux's `WAKEUP_CHARS`), so the write cannot block.
pub(crate) const SHARED_WRITE_BYTES_MAX: usize = 256;

/// How long a terminal that takes nothing may delay the end of a crash, in milliseconds.
const LAST_WORDS_WAIT_MS: libc::c_int = 500;

/// The steps of a crash at the terminal, where a signal handler can read them: it may neither allocate nor
/// wait for a lock.
struct LastWords {
    armed: AtomicBool,
    length: AtomicUsize,
    text: [AtomicU8; LAST_WORDS_MAX],
    modes: [AtomicU8; size_of::<libc::termios>()],
}

static LAST_WORDS: LastWords = LastWords {
    armed: AtomicBool::new(false),
    length: AtomicUsize::new(0),
    text: [const { AtomicU8::new(0) }; LAST_WORDS_MAX],
    modes: [const { AtomicU8::new(0) }; size_of::<libc::termios>()],
};

/// The signals of a crash.
const CRASHES: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The earlier handlers of [`CRASHES`]: the Rust runtime's, which reports a stack overflow.
static HANDLED_BEFORE: OnceLock<[libc::sigaction; CRASHES.len()]> = OnceLock::new();

/// Makes a crash of this process write `text` to standard output, and restore the terminal on standard input
/// to its present modes; to those of the first call, if repeated. Cuts a text beyond 2 KiB.
pub(crate) fn give_back_on_crash(text: &[u8]) {
    // While the text changes, a crash leaves the terminal alone rather than half of it.
    let armed = LAST_WORDS.armed.swap(false, Ordering::SeqCst);
    for (place, octet) in LAST_WORDS.text.iter().zip(text) {
        place.store(*octet, Ordering::SeqCst);
    }
    LAST_WORDS.length.store(text.len().min(LAST_WORDS_MAX), Ordering::SeqCst);
    if !armed {
        let mut modes = [0_u8; size_of::<libc::termios>()];
        // SAFETY: all-zero is a valid `termios`, plain numbers without padding that matters, and the
        // buffer has its size.
        let known = unsafe {
            let mut now: libc::termios = mem::zeroed();
            let known = libc::tcgetattr(libc::STDIN_FILENO, &mut now) == 0;
            ptr::copy_nonoverlapping((&raw const now).cast(), modes.as_mut_ptr(), modes.len());
            known
        };
        if !known {
            return;
        }
        for (place, octet) in LAST_WORDS.modes.iter().zip(modes) {
            place.store(octet, Ordering::SeqCst);
        }
        HANDLED_BEFORE.get_or_init(handle_crashes);
    }
    LAST_WORDS.armed.store(true, Ordering::SeqCst);
}

/// Undoes [`give_back_on_crash`], after the terminal was given back.
pub(crate) fn nothing_to_give_back() {
    LAST_WORDS.armed.store(false, Ordering::SeqCst);
}

fn handle_crashes() -> [libc::sigaction; CRASHES.len()] {
    CRASHES.map(|signal| {
        // SAFETY: all-zero is a valid `sigaction`; `crashed` has the signature that SA_SIGINFO asks for and
        // makes async-signal-safe calls only.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = crashed as *const () as libc::sighandler_t;
            // The runtime gives the main thread another stack, should its own have overflowed.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, &mut before);
            before
        }
    })
}

/// Gives the terminal back, and lets the crash continue.
extern "C" fn crashed(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    if LAST_WORDS.armed.swap(false, Ordering::SeqCst) {
        let length = LAST_WORDS.length.load(Ordering::SeqCst).min(LAST_WORDS_MAX);
        say(&LAST_WORDS.text[..length]);
        // SAFETY: async-signal-safe calls on live memory; an array of atomics is laid out as octets, and
        // nobody writes them while the handler runs on the thread that would.
        unsafe {
            let mut modes: libc::termios = mem::zeroed();
            let from = LAST_WORDS.modes.as_ptr().cast::<u8>();
            ptr::copy_nonoverlapping(from, (&raw mut modes).cast(), LAST_WORDS.modes.len());
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &modes);
        }
    }
    let before = CRASHES.iter().position(|crash| *crash == signal).zip(HANDLED_BEFORE.get());
    // SAFETY: the kernel's pointer is valid while the handler runs. A fault of our own happens again as
    // soon as it returns, for whoever handled it before; what was sent is sent again, once.
    unsafe {
        match before {
            Some((index, actions)) if (*info).si_code > 0 => {
                libc::sigaction(signal, &actions[index], ptr::null_mut());
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}

/// Writes as much of `text` to standard output as it takes. For a signal handler.
fn say(mut text: &[AtomicU8]) {
    while !text.is_empty() {
        let mut output =
            libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
        let length = text.len().min(SHARED_WRITE_BYTES_MAX);
        // SAFETY: async-signal-safe calls on live memory, as in `crashed`.
        let written = unsafe {
            match libc::poll(&mut output, 1, LAST_WORDS_WAIT_MS) {
                1.. => libc::write(libc::STDOUT_FILENO, text.as_ptr().cast(), length),
                _ => 0,
            }
        };
        match usize::try_from(written) {
            Ok(written @ 1..) => text = &text[written..],
            _ => return,
        }
    }
}

/// Whether this process ignores the signal of this number, as programs under `nohup` do.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero is a valid `sigaction`, and without a new action the call only fills it.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// The environment of this process. Values need not be text.
#[expect(clippy::disallowed_methods, reason = "the environment is read here for the whole crate")]
pub(crate) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// The user database's entry of the user we run as.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    /// The login name.
    pub name: OsString,
    /// The home directory.
    pub home: PathBuf,
    /// The login shell; empty means `/bin/sh` (passwd(5)).
    pub shell: PathBuf,
}

/// Looks up the user we run as. `None` if the database has no such user.
pub(crate) fn account() -> Option<Account> {
    // SAFETY: `look_up` gives pointers to live values, and the buffer's length.
    look_up(|entry, buffer, length, found| unsafe {
        libc::getpwuid_r(libc::getuid(), entry, buffer, length, found)
    })
}

/// Looks up the user of this name.
pub(crate) fn account_of(name: &CStr) -> Option<Account> {
    // SAFETY: `look_up` gives pointers to live values, and the buffer's length; `name` is a string.
    look_up(|entry, buffer, length, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, buffer, length, found)
    })
}

/// Asks the user database with getpwuid_r or getpwnam_r (getpwnam(3)).
fn look_up(
    ask: impl Fn(*mut libc::passwd, *mut c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> Option<Account> {
    let mut buffer = vec![0; 1024];
    loop {
        // SAFETY: all-zero is a valid `passwd`: null pointers and numbers.
        let mut entry: libc::passwd = unsafe { mem::zeroed() };
        let mut found = ptr::null_mut();
        let error = ask(&mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
        if error == libc::ERANGE && buffer.len() < PASSWD_BYTES_MAX {
            buffer.resize(buffer.len() * 2, 0);
            continue;
        }
        if error != 0 || found.is_null() {
            return None;
        }
        // SAFETY: on success the fields are null or strings inside `buffer`.
        return unsafe {
            Some(Account {
                name: owned(entry.pw_name),
                home: owned(entry.pw_dir).into(),
                shell: owned(entry.pw_shell).into(),
            })
        };
    }
}

/// Longest entry of the user database that is read; a longer one counts as absent.
const PASSWD_BYTES_MAX: usize = 1 << 20;

/// Copies a C string; null becomes empty.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string.
unsafe fn owned(text: *const c_char) -> OsString {
    if text.is_null() {
        return OsString::new();
    }
    // SAFETY: the caller's promise.
    OsString::from_vec(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

/// One login in utmp(5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LoginRecord {
    /// Who is logged in.
    pub user: OsString,
    /// The terminal, below `/dev`.
    pub line: OsString,
    /// The remote host, or the text of the program that made the record.
    pub host: OsString,
}

/// The logins of this machine. None if the C library keeps no records of them, as musl does not.
///
/// # Panics
/// In a process with more than one thread: the C library has one buffer for its result.
pub(crate) fn login_records() -> Vec<LoginRecord> {
    assert!(is_single_threaded(), "login records are read before threads start");
    let mut records = Vec::new();
    // SAFETY: with one thread nobody else reads records; each is valid until the next is read.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::setutxent();
        loop {
            let entry = libc::getutxent();
            if entry.is_null() {
                break;
            }
            if (*entry).ut_type == libc::USER_PROCESS {
                let text = |field: &[c_char]| {
                    let octets = field.iter().map(|octet| octet.cast_unsigned());
                    OsString::from_vec(octets.take_while(|octet| *octet != 0).collect())
                };
                let user = text(&(*entry).ut_user);
                let (line, host) = (text(&(*entry).ut_line), text(&(*entry).ut_host));
                records.push(LoginRecord { user, line, host });
            }
        }
        libc::endutxent();
    }
    records
}

/// The addresses of this machine's network interfaces, in the system's order.
pub(crate) fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: `list` is a live local; it is freed below.
    if unsafe { libc::getifaddrs(&mut list) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    // SAFETY: a null-terminated chain that nobody else changes; an address, where there is one, has
    // the layout that its family says.
    unsafe {
        while !entry.is_null() {
            addresses.extend(address((*entry).ifa_addr));
            entry = (*entry).ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(addresses)
}

/// # Safety
/// `socket` is null or points to a socket address whose layout its family names.
unsafe fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: the caller's promise. The system's addresses need not be aligned for the wider types.
    unsafe {
        match i32::from((*socket).sa_family) {
            libc::AF_INET => {
                let v4 = socket.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = socket.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// Fresh random bytes from the kernel.
pub fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        match rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Whether this is the process's only thread; if the system cannot tell, the caller must be right.
fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
        || !std::path::Path::new("/proc/self/task").exists()
}

unsafe extern "C" {
    /// The environment block (environ(7)).
    static mut environ: *mut *mut c_char;
}

/// Makes the runtime watch an open file. `T` owns the file, or borrows one that outlives the program's
/// runtime, and always names the same one: all of this crate's do.
pub(crate) fn watch<T: AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: as said above, the file stays open and the same for as long as it is watched; nobody
    // swaps the value behind `get_mut`.
    unsafe { AsyncFd::register_with_interest(file, interest) }.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_user_has_an_account() {
        let account = account().unwrap();
        assert!(!account.name.is_empty());
        assert!(account.home.is_absolute());
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(*random::<16>().unwrap(), *random::<16>().unwrap());
    }

    #[test]
    fn loopback_is_an_interface() {
        assert!(interface_addresses().unwrap().contains(&Ipv4Addr::LOCALHOST.into()));
    }

    #[test]
    fn a_process_with_threads_does_not_detach() {
        // The test harness runs this on a thread of its own.
        assert_eq!(detach().unwrap_err().kind(), io::ErrorKind::Other);
    }

    /// Marks the environment of this test when it runs again, in a process of its own.
    const CONFINED: &str = "THIS_TEST_IS_CONFINED";

    /// Whether a call failed for lack of a right.
    fn is_refused(result: libc::c_long) -> bool {
        result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }

    #[test]
    fn calls_that_lead_out_of_a_process_are_refused() {
        use crate::os::sandbox::{Named, Reach, confine_all};

        let name = "sys::tests::calls_that_lead_out_of_a_process_are_refused";
        let Some((_, reach)) = environment().find(|(name, _)| name == CONFINED) else {
            for reach in ["datagrams", "named", "connections"] {
                let mut again = Command::new(std::env::current_exe().unwrap());
                again.args(["--exact", name, "--nocapture"]).env(CONFINED, reach);
                let output = again.output().unwrap();
                assert!(output.status.success(), "{reach}: {output:?}");
            }
            return;
        };
        let reach = match reach.to_str() {
            Some("datagrams") => Reach::Datagrams,
            Some("named") => Reach::Named(Named::default()),
            _ => Reach::Connections,
        };
        if let Err(error) = confine_all(&reach).calls {
            eprintln!("SKIPPED: this kernel refuses no calls: {error}");
            return;
        }
        let (none, nowhere) = (0_usize, ptr::null_mut::<libc::c_void>());
        let mut octet = 0_u8;
        let part = libc::iovec { iov_base: (&raw mut octet).cast(), iov_len: 1 };
        // SAFETY: what is allowed would read and write the one octet of `part`, or fail for want of arguments.
        unsafe {
            let own = libc::c_long::from(libc::getpid());
            let (vm_read, one) = (libc::SYS_process_vm_readv, 1_usize);
            assert!(is_refused(libc::ptrace(libc::PTRACE_TRACEME, 0, nowhere, nowhere)));
            assert!(is_refused(libc::syscall(vm_read, own, &part, one, &part, one, none)));
            assert!(is_refused(libc::syscall(libc::SYS_io_uring_setup, none, nowhere)));
            assert!(is_refused(libc::syscall(libc::SYS_execveat, none, nowhere, none, none, none)));
            // TIOCSTI: of no file at all it would be said that there is none. TIOCGWINSZ is no such thing.
            assert!(is_refused(libc::syscall(libc::SYS_ioctl, -1_isize, 0x5412_usize, nowhere)));
            assert!(!is_refused(libc::syscall(libc::SYS_ioctl, -1_isize, 0x5413_usize, nowhere)));
            // The same by x32's numbers, where the kernel has them or not.
            #[cfg(target_arch = "x86_64")]
            assert!(is_refused(libc::syscall(0x4000_0000 | libc::SYS_getpid)));
            let raw = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0);
            assert_eq!(is_refused(raw.into()), reach != Reach::Connections);
            // Only the lower half of an argument counts.
            let family = (1_u64 << 32) | libc::AF_UNIX.unsigned_abs() as u64;
            let made = libc::syscall(libc::SYS_socket, family, libc::SOCK_STREAM, none);
            assert_eq!(is_refused(made), reach != Reach::Connections);
        }
    }
}
