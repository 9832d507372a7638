//! Notices that this machine's network has changed: an address came or went.
//!
//! The system reports every such change, and many that change nothing; `net::routes` decides whether it matters to a
//! session.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::NetworkManagement::IpHelper::{
    CancelMibChangeNotify2, MIB_NOTIFICATION_TYPE, MIB_UNICASTIPADDRESS_ROW,
    NotifyUnicastIpAddressChange,
};
use windows_sys::Win32::Networking::WinSock::AF_UNSPEC;

/// A source of network changes.
#[derive(Debug)]
pub struct NetworkChanges {
    handle: HANDLE,
    news: Box<Told>,
}

/// A change that the system's thread has told of, and who waits for one.
#[derive(Debug, Default)]
struct Told(Mutex<(bool, Option<Waker>)>);

// SAFETY: the handle is a number, used by one owner.
unsafe impl Send for NetworkChanges {}

impl NetworkChanges {
    /// Starts to listen.
    pub(crate) fn watch() -> io::Result<NetworkChanges> {
        let news = Box::<Told>::default();
        let mut handle = ptr::null_mut();
        // SAFETY: the box is where it is until the registration ends, which waits for calls under way.
        let error = unsafe {
            let context = ptr::from_ref(&*news).cast();
            NotifyUnicastIpAddressChange(AF_UNSPEC, Some(told), context, false, &mut handle)
        };
        match error {
            0 => Ok(NetworkChanges { handle, news }),
            error => Err(io::Error::from_raw_os_error(error.cast_signed())),
        }
    }

    /// Waits for a change, and takes all messages about it.
    pub fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut news = self.news.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut news.0) {
            return Poll::Ready(());
        }
        news.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for NetworkChanges {
    fn drop(&mut self) {
        // SAFETY: the registration is ours. The call returns once no callback runs any more.
        unsafe { CancelMibChangeNotify2(self.handle) };
    }
}

unsafe extern "system" fn told(
    news: *const c_void,
    _: *const MIB_UNICASTIPADDRESS_ROW,
    _: MIB_NOTIFICATION_TYPE,
) {
    // SAFETY: it is the box of the registration.
    let news = unsafe { &*news.cast::<Told>() };
    let mut news = news.0.lock().unwrap_or_else(PoisonError::into_inner);
    news.0 = true;
    if let Some(waker) = news.1.take() {
        waker.wake();
    }
}
