//! The runtime that a command runs in.

use crate::failure::Failure;
use crate::os;

/// Runs a program's future to its end on this thread.
pub(crate) fn in_runtime<T>(
    program: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    run(&mut runtime(), program)
}

pub(crate) fn runtime() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().on_thread_start(os::signals::leave_to_first);
    builder
}

pub(crate) fn run<T>(
    builder: &mut tokio::runtime::Builder,
    program: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = builder.build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}"), ""))?;
    let entered = runtime.enter();
    os::signals::handle_children();
    drop(entered);
    let result = runtime.block_on(program);
    // A name that is still being looked up must not keep the program.
    runtime.shutdown_background();
    result
}
