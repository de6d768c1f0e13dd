"""The parts of ``mask_padding``: what is known of values (`validity`, `knowledge`), what each expression makes
of it (`values`, `calls`, `moves`, `custom_reductions`), what branches, loops and stores ask (`branches`,
`rounds`, `stores`)."""
