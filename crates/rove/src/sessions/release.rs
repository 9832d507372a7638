//! Asks the servers of this user's other copies for what they hold.

use std::time::Duration;

use crate::sessions::ask::ask_within;
use crate::sessions::directory::{Directory, Places};
use crate::sessions::line::Request;

/// How long a server is waited for. One that stands still is not.
const ANSWER_WAIT: Duration = Duration::from_millis(300);

/// Asks for a part, by the device and the number of the file. Its holder lets it go if its client is silent.
pub(crate) fn release((device, file): (u64, u64)) {
    let request = Request::Release(device, file);
    let (directories, _) = Places::here().to_list();
    for path in directories.iter().flat_map(Directory::helpers) {
        if ask_within(&path, &request, ANSWER_WAIT).is_ok_and(|answer| answer == "OK") {
            return;
        }
    }
}
