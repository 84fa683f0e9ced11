//! Texts that are put together at compile time, for errors about signatures.

use crate::signature::{Length, Param, StaticType};

/// A text of limited length. What does not fit is left out.
pub(crate) struct Text {
    bytes: [u8; Text::ROOM],
    len: usize,
}

impl Text {
    const ROOM: usize = 8192;

    pub(crate) const fn new() -> Text {
        Text {
            bytes: [0; Text::ROOM],
            len: 0,
        }
    }

    /// All of `text` or none of it, so that no character is cut.
    pub(crate) const fn add(&mut self, text: &str) -> &mut Text {
        let text = text.as_bytes();
        if self.len + text.len() <= Text::ROOM {
            let mut i = 0;
            while i < text.len() {
                self.bytes[self.len + i] = text[i];
                i += 1;
            }
            self.len += text.len();
        }
        self
    }

    pub(crate) const fn quote(&mut self, prefix: &str, name: &str) -> &mut Text {
        self.add("`").add(prefix).add(name).add("`")
    }

    pub(crate) const fn name(&mut self, name: &str) -> &mut Text {
        self.quote("", name)
    }

    /// Begins a line about something.
    pub(crate) const fn line(&mut self, name: &str) -> &mut Text {
        self.add("\n- ").name(name)
    }

    const fn number(&mut self, number: usize) -> &mut Text {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        if number >= 10 {
            self.number(number / 10);
        }
        self.add(DIGITS[number % 10])
    }

    /// The type of a parameter.
    pub(crate) const fn param(&mut self, param: &Param) -> &mut Text {
        match (param.ty.value, param.ty.dtype) {
            (Some(StaticType::Str), _) => self.add("a static string"),
            (Some(StaticType::Number(dtype, length)), _) => {
                self.add("a static ").add(dtype.name());
                match length {
                    Length::One => self,
                    Length::Slice => self.add(" slice"),
                    Length::Fixed(k) => self.add(" list of ").number(k),
                }
            }
            (None, Some(dtype)) => {
                self.add("an array of ").add(dtype.name()).add(" of rank ");
                self.number(param.ty.rank);
                let mut i = 0;
                while i < param.ty.packed.len() {
                    self.add(if i == 0 { " with elements of " } else { " x " });
                    self.number(param.ty.packed[i]);
                    i += 1;
                }
                self
            }
            (None, None) => self.add("no value"),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn as_str(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_too_long_lose_their_end() {
        let mut text = Text::new();
        for _ in 0..2 * Text::ROOM {
            text.number(1207).add("ü");
        }
        assert!(text.len > Text::ROOM - 8 && text.as_str().starts_with("1207ü1207ü"));
    }
}
