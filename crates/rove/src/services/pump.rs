//! Moves octets between a channel and a pair of streams.

use std::io::{self};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Octets moved at a time. A pipe of Linux holds as many.
pub(crate) const PUMP_BYTES: usize = 64 << 10;

/// Moves octets until the end of `from`, which `to` is not told.
pub(crate) async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; PUMP_BYTES];
    loop {
        match from.read(&mut buffer).await? {
            0 => return to.flush().await,
            count => to.write_all(&buffer[..count]).await?,
        }
        to.flush().await?;
    }
}
