use std::path::PathBuf;

use crate::{
    cli::RunArgs,
    orders::{Product, Refusal, Source, read_products},
};

/// What is to be run, read before anything is touched: when it cannot be read, nothing was done.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) products: Vec<Product>,
    pub(super) refused_products: Vec<Refusal>,
    pub(super) orders: Source,
    pub(super) order_lines: Vec<u8>,
}

impl Input {
    pub(super) fn read(args: &RunArgs) -> anyhow::Result<Self> {
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
