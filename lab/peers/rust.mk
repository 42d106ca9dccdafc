# Systems in Rust: one cargo workspace. All are built at once, so that crates share dependencies with
# the same features; a crate that fails leaves the others.
RUST_SYSTEMS := dust-dds hdds iceoryx2 rustdds zenoh
RUST_TARGET := $(CACHE)/rust-peers
RUST_SOURCES := $(shell find rust -type f) $(wildcard kit/*)
SYSTEMS += $(RUST_SYSTEMS)

define RUST_SYSTEM
NEED_$(1) = command -v cargo
HOW_$(1) = cargo is missing: install Rust 1.95 or later from rustup.rs
$$(OUT)/$(1): $$(RUST_SOURCES)
	@mkdir -p $$(OUT)
	rm -f '$$(RUST_TARGET)/release/peer-$(1)'
	-CARGO_INCREMENTAL=0 CARGO_TARGET_DIR='$$(RUST_TARGET)' nice -n 10 cargo build --release \
	  --locked --quiet --workspace --keep-going --manifest-path rust/Cargo.toml
	cp '$$(RUST_TARGET)/release/peer-$(1)' $$@
endef
$(foreach system,$(RUST_SYSTEMS),$(eval $(call RUST_SYSTEM,$(system))))
