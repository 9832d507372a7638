//! The time since the machine started, with what it slept, and a timer on it.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Power::{
    DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS, PowerRegisterSuspendResumeNotification,
};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CancelWaitableTimer, CreateEventW,
    CreateWaitableTimerExW, INFINITE, SetEvent, SetWaitableTimer, TIMER_ALL_ACCESS,
    WaitForMultipleObjects,
};
use windows_sys::Win32::UI::WindowsAndMessaging::{DEVICE_NOTIFY_CALLBACK, PBT_APMRESUMEAUTOMATIC};

/// `QueryInterruptTimePrecise`, in units of 100 ns.
type Precise = unsafe extern "system" fn(*mut u64);

/// The time since the machine started, with what it slept. Windows before 10, and wine, have the performance counter
/// alone, which may stand still in sleep.
pub(crate) fn since_boot() -> Duration {
    static PRECISE: OnceLock<Option<Precise>> = OnceLock::new();
    match PRECISE.get_or_init(precise) {
        Some(read) => {
            let mut units = 0;
            // SAFETY: the call writes the number.
            unsafe { read(&mut units) };
            Duration::new(units / 10_000_000, (units % 10_000_000) as u32 * 100)
        }
        None => counted(),
    }
}

fn precise() -> Option<Precise> {
    // SAFETY: both names are strings; the function has this type (realtimeapiset.h).
    unsafe {
        let library = GetModuleHandleA(c"kernelbase.dll".as_ptr().cast());
        if library.is_null() {
            return None;
        }
        let found = GetProcAddress(library, c"QueryInterruptTimePrecise".as_ptr().cast())?;
        Some(std::mem::transmute::<unsafe extern "system" fn() -> isize, Precise>(found))
    }
}

fn counted() -> Duration {
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: the calls write the numbers. They do not fail since Windows XP.
    unsafe {
        QueryPerformanceCounter(&mut count);
        QueryPerformanceFrequency(&mut frequency);
    }
    let (count, frequency) = (count.unsigned_abs(), frequency.unsigned_abs().max(1));
    let rest = u128::from(count % frequency) * 1_000_000_000 / u128::from(frequency);
    Duration::new(count / frequency, rest as u32)
}

/// A timer on that clock.
#[derive(Debug)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    due: Option<Duration>,
}

/// What a timer and its thread have in common.
#[derive(Debug)]
struct Shared {
    timer: OwnedHandle,
    stop: OwnedHandle,
    /// The timer has gone off since it was set.
    fired: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Timer {
    /// Makes a timer that is not set.
    pub(crate) fn new() -> io::Result<Timer> {
        // SAFETY: the calls take no memory; the handles are owned here.
        let (timer, stop) = unsafe {
            let flags = CREATE_WAITABLE_TIMER_HIGH_RESOLUTION;
            let mut timer =
                CreateWaitableTimerExW(ptr::null(), ptr::null(), flags, TIMER_ALL_ACCESS);
            if timer.is_null() {
                // Before Windows 10 1803: to a tick of 15 ms.
                timer = CreateWaitableTimerExW(ptr::null(), ptr::null(), 0, TIMER_ALL_ACCESS);
            }
            (owned(timer)?, owned(CreateEventW(ptr::null(), 1, 0, ptr::null()))?)
        };
        let (fired, waker) = (AtomicBool::new(false), Mutex::new(None));
        let shared = Arc::new(Shared { timer, stop, fired, waker });
        let own = Arc::clone(&shared);
        thread::Builder::new().name("timer".into()).spawn(move || own.watch())?;
        go_off_after_sleep(&shared);
        Ok(Timer { shared, due: None })
    }

    /// Sets when it goes off, by [`since_boot`]; `None` for never. A time in the past goes off at once.
    pub(crate) fn set(&mut self, at: Option<Duration>) -> io::Result<()> {
        self.due = at;
        match at {
            Some(at) => self.shared.set(at.saturating_sub(since_boot())),
            None => {
                // SAFETY: the handle is open.
                unsafe { CancelWaitableTimer(self.shared.timer.as_raw_handle()) };
                Ok(())
            }
        }
    }

    /// Ready once it has gone off; it is then no longer set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(due) = self.due else { return Poll::Pending };
        *self.shared.waker.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(cx.waker().clone());
        let left = due.saturating_sub(since_boot());
        if left.is_zero() {
            self.due = None;
            return Poll::Ready(Ok(()));
        }
        // The system's timer has gone off, and the clock is not there yet.
        if self.shared.fired.swap(false, Ordering::SeqCst) {
            self.shared.set(left)?;
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the handle is open.
        unsafe { SetEvent(self.shared.stop.as_raw_handle()) };
    }
}

impl Shared {
    fn set(&self, left: Duration) -> io::Result<()> {
        self.fired.store(false, Ordering::SeqCst);
        // In units of 100 ns; below zero it counts from now. Rounded up: one too soon is set once more.
        let units = left.as_nanos().div_ceil(100).max(1);
        let due = -i64::try_from(units).unwrap_or(i64::MAX);
        // SAFETY: the handle is open, and the call reads the number.
        let set =
            unsafe { SetWaitableTimer(self.timer.as_raw_handle(), &due, 0, None, ptr::null(), 0) };
        if set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Wakes the timer's task each time that it goes off.
    fn watch(&self) {
        let handles = [self.timer.as_raw_handle(), self.stop.as_raw_handle()];
        // SAFETY: two open handles.
        while unsafe { WaitForMultipleObjects(2, handles.as_ptr(), 0, INFINITE) } == WAIT_OBJECT_0 {
            self.fired.store(true, Ordering::SeqCst);
            let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// A timer counts only what the machine is awake, so that after a sleep each goes off and is looked at.
fn go_off_after_sleep(timer: &Arc<Shared>) {
    let mut timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    timers.retain(|timer| timer.strong_count() > 1);
    timers.push(Arc::downgrade(timer));
    drop(timers);
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let told = Box::new(DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS {
            Callback: Some(resumed),
            Context: ptr::null_mut(),
        });
        let (told, mut registered) = (Box::leak(told), ptr::null_mut());
        // SAFETY: what the call is given stays for the life of the process. Where it fails, a timer is late after a sleep.
        unsafe {
            let told = ptr::from_mut(told).cast();
            PowerRegisterSuspendResumeNotification(DEVICE_NOTIFY_CALLBACK, told, &mut registered);
        }
    });
}

static TIMERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

unsafe extern "system" fn resumed(_: *const c_void, kind: u32, _: *const c_void) -> u32 {
    if kind == PBT_APMRESUMEAUTOMATIC {
        let timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
        for timer in timers.iter().filter_map(Weak::upgrade) {
            let _ = timer.set(Duration::ZERO);
        }
    }
    0
}

/// A handle that a call has made.
///
/// # Safety
/// The handle is null, or nobody else's.
unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    match handle.is_null() {
        true => Err(io::Error::last_os_error()),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { OwnedHandle::from_raw_handle(handle) }),
    }
}
