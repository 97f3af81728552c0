"""Other libraries' names over what is here, so that their programs run after changing one import."""
