//! Gives the terminal back when this process crashes.
#![allow(unsafe_code)]

use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use crate::os::system::terminal::is_fault;

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
            Some((index, actions)) if is_fault((*info).si_code) => {
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
