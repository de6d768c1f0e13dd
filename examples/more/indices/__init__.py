"""Elements found by an index that another tensor holds: looked up, added to, counted."""
