use std::process::ExitCode;

use saga_core::{
    engine::{Cancellation, RuntimeError, SagaDesk},
    store::Status,
};

use crate::{
    cli::CancelArgs,
    place::Place,
    print::print,
    saga::{create_order, create_order_across_services},
};

/// Cancels one order: what was done of it is undone by whoever works on the store.
///
/// # Errors
///
/// A sentence, when there is no such order, it can only go forward, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, the order was cancelled or not; the same again says which.
pub async fn cancel(place: &impl Place, args: &CancelArgs) -> anyhow::Result<ExitCode> {
    place.look_at_store().await?;
    let desk = SagaDesk::new(place.open_store().await?);
    let desk = desk.saga(&create_order()).saga(&create_order_across_services());
    let key = &args.key;
    let said = match desk.cancel(key, &args.reason).await {
        Ok(Cancellation::Begun) => "is cancelled; whoever works on the store undoes what was done of it",
        Ok(Cancellation::UnderWay) => "is being undone already",
        Ok(Cancellation::Ended(Status::Completed)) => "is completed already",
        Ok(Cancellation::Ended(_)) => "is undone already",
        Err(RuntimeError::NoSaga(_)) => anyhow::bail!("there is no order {key} in {}", place.shown()),
        Err(error) => return Err(error.into()),
    };
    print(format_args!("{key} {said}\n"))?;
    Ok(ExitCode::SUCCESS)
}
