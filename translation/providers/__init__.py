"""One file per dialect; what a provider can do is data, in `profiles`."""
