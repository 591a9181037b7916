//! The operator's commands on all that this program knows.

use std::{io::stdout, process::ExitCode};

use saga_cli::{Admin, Command};

use crate::{
    cli::ServiceName,
    place::Place,
    saga::{create_order, create_order_across_services, payments, shipping},
};

/// Runs one of the operator's commands.
pub async fn admin(place: &impl Place, command: &Command) -> anyhow::Result<ExitCode> {
    let admin = Admin::new("order-rig", place.clone())
        .replies_to(ServiceName::Orders.as_str())
        .saga(&create_order()?)
        .saga(&create_order_across_services()?)
        .service(&payments()?)
        .service(&shipping()?);
    admin.run(command, &mut stdout()).await
}
