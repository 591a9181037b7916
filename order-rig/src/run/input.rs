use std::path::PathBuf;

use crate::{
    cli::OrdersArgs,
    orders::{Product, Refusal, Source, read_products},
};

/// What is to be run, read before anything is touched: when it cannot be read, nothing was done.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) products: Vec<Product>,
    pub(crate) refused_products: Vec<Refusal>,
    pub(crate) orders: Source,
    pub(crate) order_lines: Vec<u8>,
}

impl Input {
    pub(crate) fn read(args: &OrdersArgs) -> anyhow::Result<Self> {
        let source = |given: &Option<PathBuf>, sample: Source| match given {
            Some(path) => Source::file_or_stdin(path),
            None => sample,
        };
        let products = source(&args.products, Source::SAMPLE_PRODUCTS);
        let orders = source(&args.orders, Source::SAMPLE_ORDERS);
        let (products, refused_products) = read_products(&products, &products.read()?);
        let order_lines = orders.read()?;
        Ok(Self { products, refused_products, orders, order_lines })
    }
}
