//! Asks the servers of this user's other copies for what they hold.

use std::time::Duration;

use crate::sessions::ask::ask_within;
use crate::sessions::directory::{Directory, Places};
use crate::sessions::line::{Request, read_released};

/// How long a server is waited for. One that stands still is not.
const ANSWER_WAIT: Duration = Duration::from_millis(300);

/// Asks for a part, by the device and the number of the file. Its holder lets it go if its client is silent. Returns how
/// many seconds ago that was heard, if a server holds it and knows.
pub(crate) fn release((device, file): (u64, u64)) -> Option<u32> {
    let request = Request::Release(device, file);
    let (directories, _) = Places::here().to_list();
    let mut paths = directories.iter().flat_map(Directory::helpers);
    paths.find_map(|path| read_released(&ask_within(&path, &request, ANSWER_WAIT).ok()?)).flatten()
}
