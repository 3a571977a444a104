//! Text made where memory may run out: `String` by itself would abort.

use std::fmt::{self, Write};

use super::NoMemory;

/// What `write!` appends to. It fails only for want of memory.
#[derive(Default)]
pub struct Text(String);

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.0.try_reserve(more.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(more);
        Ok(())
    }
}

impl From<fmt::Error> for NoMemory {
    fn from(_: fmt::Error) -> Self {
        NoMemory
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

/// `format!`, but that it may fail.
pub fn formatted(arguments: fmt::Arguments) -> Result<String, NoMemory> {
    let mut text = Text::default();
    text.write_fmt(arguments)?;
    Ok(text.into())
}
