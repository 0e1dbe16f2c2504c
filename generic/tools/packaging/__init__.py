"""What installs an extension in a Gardener landscape: its Helm chart, and its registration."""
