"""What an experiment IS: frozen, validated models. No torch, no input or output."""
