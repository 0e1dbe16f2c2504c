"""The Helm chart and the registration that install an extension in a Gardener landscape."""
