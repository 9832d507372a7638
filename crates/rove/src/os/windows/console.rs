//! The console: its modes, its keys as octets, its size, and what is shown on it. It can neither be read nor written
//! without waiting, so that a thread does either.
#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, CONSOLE_SCREEN_BUFFER_INFO, DISABLE_NEWLINE_AUTO_RETURN, ENABLE_EXTENDED_FLAGS,
    ENABLE_INSERT_MODE, ENABLE_PROCESSED_OUTPUT, ENABLE_QUICK_EDIT_MODE,
    ENABLE_VIRTUAL_TERMINAL_INPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING, ENABLE_WINDOW_INPUT,
    ENABLE_WRAP_AT_EOL_OUTPUT, FlushConsoleInputBuffer, GetConsoleMode, GetConsoleOutputCP,
    GetConsoleScreenBufferInfo, GetNumberOfConsoleInputEvents, GetStdHandle, INPUT_RECORD,
    KEY_EVENT, ReadConsoleInputW, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
    SetConsoleOutputCP, WINDOW_BUFFER_SIZE_EVENT, WriteConsoleW,
};
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, ResetEvent, SetEvent, WaitForMultipleObjects,
};
use windows_sys::Win32::UI::Input::KeyboardAndMouse::VK_MENU;

use crate::os::windows::queue::Queue;

/// Octets typed ahead that are held; the console holds more.
const KEYS_BYTES_MAX: usize = 64 << 10;

/// Octets shown that are held: a frame at a time is written.
const SHOWN_BYTES_MAX: usize = 4 << 20;

/// Records read at a time.
const RECORDS_MAX: usize = 128;

/// Units written at a time: older consoles take no more than 64 KiB in one call.
const UNITS_MAX: usize = 8 << 10;

/// Units written at a time in a crash.
const CRASH_UNITS: usize = 256;

/// The code page of UTF-8.
const UTF8: u32 = 65001;

/// A standard handle of this process.
fn standard(which: STD_HANDLE) -> HANDLE {
    // SAFETY: the call takes a number.
    unsafe { GetStdHandle(which) }
}

/// The modes of the console, and what its output is read as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modes {
    input: CONSOLE_MODE,
    output: CONSOLE_MODE,
    code_page: u32,
}

/// The modes that the console has now.
///
/// # Errors
/// If standard input or output is no console.
pub(crate) fn modes() -> io::Result<Modes> {
    // SAFETY: the call takes nothing.
    let code_page = unsafe { GetConsoleOutputCP() };
    Ok(Modes { input: mode(STD_INPUT_HANDLE)?, output: mode(STD_OUTPUT_HANDLE)?, code_page })
}

fn mode(which: STD_HANDLE) -> io::Result<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the call writes the number, or fails on what is no console.
    match unsafe { GetConsoleMode(standard(which), &mut mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(mode),
    }
}

fn set_mode(which: STD_HANDLE, mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: the call takes a handle and a number.
    match unsafe { SetConsoleMode(standard(which), mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl Modes {
    /// Sets the console to these.
    pub(crate) fn set(self) -> io::Result<()> {
        // SAFETY: the call takes a number.
        unsafe { SetConsoleOutputCP(self.code_page) };
        let output = set_mode(STD_OUTPUT_HANDLE, self.output);
        set_mode(STD_INPUT_HANDLE, self.input).and(output)
    }

    /// These, changed so that keys come as they are typed and control sequences do what they say. Whether the mouse
    /// selects text stays the user's choice.
    pub(crate) fn raw(self) -> Modes {
        let kept = ENABLE_EXTENDED_FLAGS | ENABLE_QUICK_EDIT_MODE | ENABLE_INSERT_MODE;
        Modes {
            input: self.input & kept | ENABLE_VIRTUAL_TERMINAL_INPUT | ENABLE_WINDOW_INPUT,
            output: ENABLE_PROCESSED_OUTPUT
                | ENABLE_WRAP_AT_EOL_OUTPUT
                | ENABLE_VIRTUAL_TERMINAL_PROCESSING
                | DISABLE_NEWLINE_AUTO_RETURN,
            code_page: UTF8,
        }
    }
}

/// The rows and columns of the window.
pub(crate) fn size() -> Option<(u16, u16)> {
    // SAFETY: all-zero is a valid value, plain numbers; the call writes it.
    let window = unsafe {
        let mut info: CONSOLE_SCREEN_BUFFER_INFO = std::mem::zeroed();
        if GetConsoleScreenBufferInfo(standard(STD_OUTPUT_HANDLE), &mut info) == 0 {
            return None;
        }
        info.srWindow
    };
    let rows = window.Bottom.checked_sub(window.Top)?.checked_add(1)?;
    let cols = window.Right.checked_sub(window.Left)?.checked_add(1)?;
    Some((rows.try_into().ok()?, cols.try_into().ok()?))
}

/// Throws away what was typed and not read.
pub(crate) fn forget_typed() {
    // SAFETY: the call takes a handle.
    unsafe { FlushConsoleInputBuffer(standard(STD_INPUT_HANDLE)) };
}

/// How often the window has changed its size, and who waits for that.
static RESIZES: (AtomicU64, Mutex<Vec<Waker>>) = (AtomicU64::new(0), Mutex::new(Vec::new()));

/// Changes of the window's size.
#[derive(Debug)]
pub(crate) struct Resizes(u64);

impl Default for Resizes {
    fn default() -> Resizes {
        Resizes(RESIZES.0.load(Ordering::SeqCst))
    }
}

impl Resizes {
    /// Ready after a change.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = RESIZES.1.lock().unwrap_or_else(PoisonError::into_inner);
        let now = RESIZES.0.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.0, now) != now {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn resized() {
    let mut waiting = RESIZES.1.lock().unwrap_or_else(PoisonError::into_inner);
    RESIZES.0.fetch_add(1, Ordering::SeqCst);
    let waiting = std::mem::take(&mut *waiting);
    waiting.into_iter().for_each(Waker::wake);
}

/// The keys of the console as octets, read by a thread while they are wanted.
#[derive(Debug)]
pub(crate) struct Keys {
    queue: Queue,
    /// An event that is set while keys are wanted.
    wanted: usize,
}

impl Keys {
    /// The only ones.
    pub(crate) fn of_console() -> io::Result<&'static Keys> {
        static KEYS: OnceLock<io::Result<&'static Keys>> = OnceLock::new();
        let keys = KEYS.get_or_init(|| {
            // SAFETY: the call takes no memory. The event stays for the life of the process.
            let wanted = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
            if wanted.is_null() {
                return Err(io::Error::last_os_error());
            }
            let keys =
                Keys { queue: Queue::new(KEYS_BYTES_MAX), wanted: wanted.expose_provenance() };
            let keys: &'static Keys = Box::leak(Box::new(keys));
            thread::Builder::new().name("console in".into()).spawn(|| keys.read())?;
            Ok(keys)
        });
        match keys {
            Ok(keys) => Ok(keys),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// The typed octets.
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Reads keys from now on, or leaves them to other programs.
    pub(crate) fn want(&self, wanted: bool) {
        let event = self.event();
        // SAFETY: the event is open.
        unsafe { if wanted { SetEvent(event) } else { ResetEvent(event) } };
    }

    fn event(&self) -> HANDLE {
        ptr::with_exposed_provenance_mut(self.wanted)
    }

    fn read(&self) {
        let input = standard(STD_INPUT_HANDLE);
        let mut half = None;
        let mut octets = Vec::new();
        loop {
            // Both: keys are wanted, and there are some.
            let both = [self.event(), input];
            // SAFETY: two open handles.
            let ready = unsafe { WaitForMultipleObjects(2, both.as_ptr(), 1, INFINITE) };
            let mut count = 0;
            // SAFETY: the call writes the number.
            let is_console = unsafe { GetNumberOfConsoleInputEvents(input, &mut count) } != 0;
            if ready != WAIT_OBJECT_0 || !is_console {
                break;
            }
            if count == 0 {
                continue;
            }
            // SAFETY: all-zero is a valid record; the call writes at most as many as there are.
            let records = unsafe {
                let mut records: [INPUT_RECORD; RECORDS_MAX] = std::mem::zeroed();
                let most = RECORDS_MAX as u32;
                if ReadConsoleInputW(input, records.as_mut_ptr(), most, &mut count) == 0 {
                    break;
                }
                records
            };
            for record in records.iter().take(count as usize) {
                match u32::from(record.EventType) {
                    KEY_EVENT => typed(record, &mut half, &mut octets),
                    WINDOW_BUFFER_SIZE_EVENT => resized(),
                    _ => {}
                }
            }
            if !octets.is_empty() && !self.queue.put(&octets) {
                break;
            }
            octets.clear();
        }
        self.queue.end();
    }
}

/// Appends what a key has typed. `half` is the first half of a character of two units.
fn typed(record: &INPUT_RECORD, half: &mut Option<u16>, octets: &mut Vec<u8>) {
    // SAFETY: the kind of record says so; a key has a character of 16 bits.
    let (key, unit) = unsafe { (record.Event.KeyEvent, record.Event.KeyEvent.uChar.UnicodeChar) };
    // A character typed by its number comes as Alt is let go.
    let is_typed = key.bKeyDown != 0 || key.wVirtualKeyCode == VK_MENU;
    // A key that is only held, Shift for one, has none either; Ctrl-@ has, and a key.
    let is_null_key = unit == 0 && !(key.bKeyDown != 0 && is_control_null(&key));
    if !is_typed || is_null_key {
        return;
    }
    for _ in 0..key.wRepeatCount.max(1) {
        let units = half.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(character) => {
                    octets.extend(character.encode_utf8(&mut [0; 4]).bytes());
                }
                Err(lone) if (0xd800..0xdc00).contains(&lone.unpaired_surrogate()) => {
                    *half = Some(lone.unpaired_surrogate());
                }
                Err(_) => {}
            }
        }
    }
}

/// Whether a key without a character is Ctrl-Space or Ctrl-2, which type a NUL.
fn is_control_null(key: &windows_sys::Win32::System::Console::KEY_EVENT_RECORD) -> bool {
    // In VT mode all keys that type several octets come as these, without a key's number.
    key.wVirtualKeyCode == u16::from(b' ') || key.wVirtualKeyCode == u16::from(b'2')
}

/// Octets on their way to the console. A thread writes them, since a user who selects text makes it wait.
#[derive(Debug)]
pub(crate) struct Shown(Arc<Queue>);

impl Shown {
    /// Begins.
    pub(crate) fn new() -> io::Result<Shown> {
        let queue = Arc::new(Queue::new(SHOWN_BYTES_MAX));
        let own = Arc::clone(&queue);
        let work = move || {
            while let Some(octets) = own.next() {
                if write(&octets).is_err() {
                    break;
                }
            }
            own.close();
        };
        thread::Builder::new().name("console out".into()).spawn(work)?;
        Ok(Shown(queue))
    }

    /// The octets that wait.
    pub(crate) fn queue(&self) -> &Queue {
        &self.0
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Writes text to the console. Octets that are no UTF-8 are replaced.
pub(crate) fn write(octets: &[u8]) -> io::Result<()> {
    write_to(standard(STD_OUTPUT_HANDLE), octets)
}

/// The same to another handle of it.
pub(crate) fn write_to(console: HANDLE, octets: &[u8]) -> io::Result<()> {
    let units: Vec<u16> = String::from_utf8_lossy(octets).encode_utf16().collect();
    let mut rest = units.as_slice();
    while !rest.is_empty() {
        let mut length = rest.len().min(UNITS_MAX);
        // Both halves of a character go together.
        if length < rest.len() && (0xd800..0xdc00).contains(&rest[length - 1]) {
            length -= 1;
        }
        let mut written = 0;
        // SAFETY: the call reads as many units as it is told, and writes the number.
        let done = unsafe {
            WriteConsoleW(console, rest.as_ptr().cast(), length as u32, &mut written, ptr::null())
        };
        if done == 0 || written == 0 {
            return Err(io::Error::last_os_error());
        }
        rest = &rest[(written as usize).min(rest.len())..];
    }
    Ok(())
}

/// Writes text that is ASCII, and asks for no memory. What cannot be written is left away.
pub(crate) fn write_in_crash(text: &[u8]) {
    for piece in text.chunks(CRASH_UNITS) {
        let mut units = [0_u16; CRASH_UNITS];
        for (unit, octet) in units.iter_mut().zip(piece) {
            *unit = u16::from(*octet);
        }
        let mut written = 0;
        let console = standard(STD_OUTPUT_HANDLE);
        // SAFETY: the call reads as many units as it is told, and writes the number.
        unsafe {
            let length = piece.len() as u32;
            WriteConsoleW(console, units.as_ptr().cast(), length, &mut written, ptr::null());
        }
    }
}

/// Whether a handle is that of a console.
pub(crate) fn is_console(handle: HANDLE) -> bool {
    let mut mode = 0;
    // SAFETY: the call writes the number, or fails on what is no console.
    unsafe { GetConsoleMode(handle, &mut mode) != 0 }
}
