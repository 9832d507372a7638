//! Gives the console back when this process crashes, and when the system ends it for a reason that nobody in it waits
//! for: Ctrl-Break, a closed window.
#![allow(unsafe_code)]

use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::Win32::System::Diagnostics::Debug::{
    EXCEPTION_POINTERS, SetUnhandledExceptionFilter,
};
use windows_sys::core::BOOL;

use crate::os::windows::tty;

/// Ends the process, without a report of its memory (EXCEPTION_EXECUTE_HANDLER).
const END: i32 = 1;

/// Begins. Before anything waits for Ctrl-Break and its like: the system asks those first who came last.
pub(crate) fn watch() {
    // SAFETY: both functions are there for the life of the process.
    unsafe {
        SetUnhandledExceptionFilter(Some(crashed));
        SetConsoleCtrlHandler(Some(ended), 1);
    }
}

unsafe extern "system" fn crashed(_: *const EXCEPTION_POINTERS) -> i32 {
    tty::restore_in_crash();
    END
}

/// What nobody waits for ends the process, as it does without this function.
unsafe extern "system" fn ended(_: u32) -> BOOL {
    tty::restore_at_end();
    0
}
