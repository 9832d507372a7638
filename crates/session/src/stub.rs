//! Stands in for the emulator and the differ until they land; then this file goes.
#![allow(missing_docs, clippy::unused_self)]

use rove_term::{Dialect, Screen, Size, Style};

#[derive(Clone, Debug)]
pub struct Terminal(Screen);

impl Terminal {
    pub fn new(size: Size, _dialect: Dialect) -> Self {
        Self(Screen::new(size))
    }
    pub fn resume(screen: Screen, _dialect: Dialect) -> Self {
        Self(screen)
    }
    pub fn into_screen(self) -> Screen {
        self.0
    }
    pub fn advance(&mut self, _octets: &[u8]) {}
    pub fn take_replies(&mut self) -> Vec<u8> {
        Vec::new()
    }
    pub fn screen(&self) -> &Screen {
        &self.0
    }
    pub fn resize(&mut self, size: Size) {
        self.0 = Screen::new(size);
    }
}

pub fn put(_screen: &mut Screen, _row: u16, _col: u16, _text: &str, _style: Style) {}
