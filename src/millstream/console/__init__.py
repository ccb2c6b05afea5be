"""The app over HTTP, for this machine only: routes over views, and who may ask."""
